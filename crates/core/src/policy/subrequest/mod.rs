//! Actions for which weir makes a request of its own (a subrequest) for each request: it asks a service, or sends a copy.
//!
//! [`Decision::subrequests`](super::Decision::subrequests) collects them. A stage of the request carries each out.

pub mod external;

use std::sync::Arc;

use external::External;

/// An action for which weir makes a request of its own.
#[derive(Debug, Clone)]
pub enum Subrequest {
    /// An external service decides whether the request is allowed (`authenticate`).
    Authorise(Arc<External>),
    /// Another pool gets a copy of the request (`mirror`).
    Mirror(Arc<Mirror>),
}

impl Subrequest {
    /// Whether it checks the request: until then no decision takes effect.
    pub fn is_check(&self) -> bool {
        matches!(self, Self::Authorise(_))
    }

    /// Whether this one does what `other` would do once more.
    pub fn makes_needless(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Authorise(service), Self::Authorise(other)) => Arc::ptr_eq(service, other),
            _ => false,
        }
    }

    /// The pool that gets weir's own request, by its index.
    pub fn pool(&self) -> usize {
        match self {
            Self::Authorise(service) => service.pool as usize,
            Self::Mirror(mirror) => mirror.pool as usize,
        }
    }

    /// Whether members of that pool get requests as those of the virtual server's pool do.
    pub fn is_served_like_requests(&self) -> bool {
        matches!(self, Self::Mirror(_))
    }

    /// The fields that weir sets for members by it, and that they take from weir alone.
    pub fn fields_of_weir(&self) -> impl Iterator<Item = &[u8]> {
        let (added, mark) = match self {
            Self::Authorise(service) => (Some(&service.added), None),
            Self::Mirror(_) => (None, Some(Mirror::FIELD)),
        };
        added.into_iter().flatten().map(|name| name.as_bytes()).chain(mark)
    }

    /// The action in the words of the configuration. `pool`: the name of its pool.
    pub fn told(&self, pool: &str) -> String {
        match self {
            Self::Authorise(service) => format!("authenticate: {} (by a service)", service.name),
            Self::Mirror(_) => format!("mirror: {pool}"),
        }
    }

    /// How it checks the request; `None`: it does not.
    pub fn check_told(&self) -> Option<String> {
        match self {
            Self::Authorise(service) => Some(format!("`{}` asks its service", service.name)),
            Self::Mirror(_) => None,
        }
    }

    /// What weir's own request is, for an explanation, which sends none. `pool`: the name of its pool.
    pub fn request_told(&self, pool: &str) -> String {
        match self {
            Self::Authorise(_) => {
                format!("a service in pool {pool} is asked: supposed to let it in")
            }
            Self::Mirror(_) => format!("pool {pool} gets a copy of the request"),
        }
    }
}

/// The destination of copies of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mirror {
    /// Index of the pool in the snapshot.
    pub pool: u32,
    /// The share of requests that are copied, in parts of [`Mirror::WHOLE`].
    pub share: u32,
}

impl Mirror {
    /// All requests: shares are in thousandths of a percent.
    pub const WHOLE: u32 = 100_000;
    /// The field that marks a copy, with the value `1`.
    pub const FIELD: &'static [u8] = b"X-Mirrored";

    /// Whether a request is copied, by a number that is evenly spread.
    pub fn takes(&self, draw: u64) -> bool {
        let place = (u128::from(draw) * u128::from(Self::WHOLE)) >> u64::BITS;
        place < u128::from(self.share)
    }
}

#[cfg(test)]
mod tests {
    use super::Mirror;

    #[test]
    fn a_share_of_requests_is_copied() {
        for (share, draw, expected) in [
            (Mirror::WHOLE, u64::MAX, true),
            (Mirror::WHOLE, 0, true),
            (1, 0, true),
            (1, u64::MAX / 100_000 + 1, false),
            (5_000, u64::MAX / 20 - 1, true),
            (5_000, u64::MAX / 20 + 1, false),
            (0, 0, false),
        ] {
            assert_eq!(Mirror { pool: 0, share }.takes(draw), expected, "{share} {draw}");
        }
    }
}
