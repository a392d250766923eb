//! The admin listeners, and their users.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use weir_tls::ServerConfig;
use weir_tls::identity::Identity;

use super::Address;
use crate::own_doors::OwnDoors;

/// `admin:` of the file.
#[derive(Debug, Clone, Default)]
pub struct AdminSettings {
    /// The addresses of the admin listeners; empty by default.
    pub listen: Vec<Address>,
    /// Accepted host names over TCP, besides addresses and `localhost`; in lower case, without a final dot.
    pub host_names: Vec<String>,
    /// TLS settings for addresses that are not loopback addresses.
    pub tls: Option<AdminTls>,
    /// The folder with reports that the dashboard shows; `None`: `reports` in the state directory.
    pub reports: Option<PathBuf>,
    /// Users in the file's order; names are unique.
    pub users: Vec<AdminUser>,
}

impl AdminSettings {
    /// The listeners as destinations that are refused. Links in the paths of unix sockets are followed at the first question.
    pub fn doors(&self) -> OwnDoors {
        OwnDoors::at(self.listen.iter())
    }

    /// The user with this token, by the token's hash. The duration does not depend on the hashes.
    pub fn user_of_token(&self, hash: &[u8; 32]) -> Option<&AdminUser> {
        let mut found = None;
        for user in &self.users {
            for known in &user.token_hashes {
                if is_same(known, hash) {
                    found = Some(user);
                }
            }
        }
        found
    }

    /// The user with one of these names in a certificate.
    pub fn user_of_certificate(&self, names: &[String]) -> Option<&AdminUser> {
        let is_of = |user: &&AdminUser| user.certificates.iter().any(|name| names.contains(name));
        self.users.iter().find(is_of)
    }
}

/// Compares in constant time.
fn is_same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    let different = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    std::hint::black_box(different) == 0
}

/// TLS settings of the admin listeners.
#[derive(Debug, Clone)]
pub struct AdminTls {
    /// The settings for handshakes.
    pub config: Arc<ServerConfig>,
    /// The certificates.
    pub identities: Vec<Arc<Identity>>,
}

/// A user of the admin listeners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminUser {
    /// The name.
    pub name: Arc<str>,
    /// The rights.
    pub role: Role,
    /// SHA-256 of each token.
    pub token_hashes: Vec<[u8; 32]>,
    /// Names in client certificates.
    pub certificates: Vec<String>,
}

/// The rights of a user; each role includes the previous ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The user may read everything.
    Read,
    /// The user may also change states, end flows, and reload.
    Operate,
    /// The user may do everything.
    Admin,
}

impl Role {
    /// All roles, from the fewest rights to the most.
    pub const ALL: [Self; 3] = [Self::Read, Self::Operate, Self::Admin];

    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_any_of_their_credentials() {
        let user = |name: &str, first: u8| AdminUser {
            name: name.into(),
            role: Role::Read,
            token_hashes: vec![[first; 32], [first + 1; 32]],
            certificates: vec![format!("{name}.example")],
        };
        let settings =
            AdminSettings { users: vec![user("ann", 1), user("bob", 3)], ..Default::default() };
        let of_token = |hash: &[u8; 32]| settings.user_of_token(hash).map(|user| &*user.name);
        for (first, name) in [(1, "ann"), (2, "ann"), (3, "bob"), (4, "bob")] {
            assert_eq!(of_token(&[first; 32]), Some(name));
        }
        for place in 0..32 {
            let mut hash = [1; 32];
            hash[place] = 0x81;
            assert_eq!(of_token(&hash), None, "{place}");
        }
        let of_certificate = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            settings.user_of_certificate(&names).map(|user| user.name.to_string())
        };
        assert_eq!(of_certificate(&["x", "bob.example"]).as_deref(), Some("bob"));
        assert_eq!(of_certificate(&["bob.exampl"]), None);
        assert_eq!(of_certificate(&[]), None);
    }

    #[test]
    fn roles_include_each_other() {
        assert!(Role::Read < Role::Operate && Role::Operate < Role::Admin);
    }
}
