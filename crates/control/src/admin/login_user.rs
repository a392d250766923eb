//! The person behind a process on the unix socket.
//!
//! The kernel names the user that such a process runs as, mostly root by sudo. Two sources say who that is:
//!
//! | source | set by | who can forge it |
//! |---|---|---|
//! | `/proc/PID/loginuid` | the system at login; sudo and su leave it | root, where the kernel permits to set it again |
//! | the header `Weir-Sudo-User` | `weir`, from sudo's `SUDO_USER` | root: it is believed only of processes of root |
//!
//! Both are for the reader of logs and versions. Rights never depend on them.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir_event_loop::sockets::peer_process;

/// The user who called sudo, as a process of root states it.
const STATED: HeaderName = HeaderName::from_static("weir-sudo-user");

/// Maximum length of a user name: that of Linux is 32, other directories have longer ones.
const NAME_BYTES_MAX: usize = 64;

/// Maximum number of bytes read of `/etc/passwd`.
const USERS_BYTES_MAX: u64 = 1 << 20;

/// The value of `loginuid` if nobody has logged in: a service, a container.
const NOBODY: u32 = u32::MAX;

/// A user of this system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SystemUser {
    pub(super) id: u32,
    /// `None`: `/etc/passwd` has no such user.
    pub(super) name: Option<Arc<str>>,
}

/// The person behind a process, with the source of the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Person {
    /// The user who logged in, as the kernel says.
    LoggedIn(SystemUser),
    /// The user who called sudo, as the process says.
    Sudo(Arc<str>),
}

impl SystemUser {
    pub(super) fn of(id: u32) -> Self {
        Self { id, name: user_name(Path::new("/etc/passwd"), id) }
    }
}

/// `anna`, or `uid 1000`.
impl fmt::Display for SystemUser {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => formatter.write_str(name),
            None => write!(formatter, "uid {}", self.id),
        }
    }
}

/// `login anna`, `sudo by anna`.
impl fmt::Display for Person {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LoggedIn(user) => write!(formatter, "login {user}"),
            Self::Sudo(name) => write!(formatter, "sudo by {name}"),
        }
    }
}

/// The user who logged in, of the process at the other end of a unix socket.
pub(super) fn logged_in(socket: &impl AsFd, process: i32) -> Option<Person> {
    let opened_by = peer_process(socket);
    let id = login_id(process)?;
    // The number of a process that has ended may be that of another one by now.
    let is_over = match &opened_by {
        // It becomes readable when the process ends.
        Some(process) => has_event(process, PollFlags::IN),
        None => has_event(socket, PollFlags::HUP | PollFlags::RDHUP),
    };
    (!is_over).then(|| Person::LoggedIn(SystemUser::of(id)))
}

/// Whether an event is there already. An error counts as one.
fn has_event(of: &impl AsFd, event: PollFlags) -> bool {
    let mut polled = [PollFd::new(of, event)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&now)).is_err() || polled[0].revents().intersects(event)
}

fn login_id(process: i32) -> Option<u32> {
    let text = read(Path::new(&format!("/proc/{process}/loginuid")), 32)?;
    text.trim().parse().ok().filter(|id| *id != NOBODY)
}

fn user_name(file: &Path, id: u32) -> Option<Arc<str>> {
    let text = read(file, USERS_BYTES_MAX)?;
    let of_line = |line: &str| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?.to_owned(), fields.nth(1)?);
        (number.parse() == Ok(id) && is_name(&name)).then(|| name.into())
    };
    text.lines().find_map(of_line)
}

/// The text of a file, up to a maximum.
fn read(file: &Path, bytes_max: u64) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(file).ok()?.take(bytes_max).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The user who called sudo, as a request of root says.
pub(super) fn stated(headers: &HeaderMap) -> Option<Person> {
    let mut fields = headers.get_all(STATED).iter();
    let name = fields.next()?.to_str().ok().filter(|name| is_name(name))?;
    fields.next().is_none().then(|| Person::Sudo(name.into()))
}

/// Whether this can be the name of a user: nothing that could be taken for other parts of a line.
fn is_name(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@\\+$".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn names_are_those_of_the_list_of_users() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("passwd");
        let text = "root:x:0:0:root:/root:/bin/sh\n# comment\nanna:x:1000:1000::/:\nbad name:x:7:7::/:\ncut:x\n";
        std::fs::write(&file, text).expect("written");
        let check = |id, expected: Option<&str>| {
            assert_eq!(user_name(&file, id).as_deref(), expected, "{id}");
        };
        check(0, Some("root"));
        check(1000, Some("anna"));
        check(7, None);
        check(8, None);
        assert_eq!(user_name(&folder.path().join("nothing"), 0), None);
    }

    #[test]
    fn statements_are_single_names() {
        let check = |fields: &[&'static str], expected: Option<&str>| {
            let mut headers = HeaderMap::new();
            for field in fields {
                headers.append(STATED, HeaderValue::from_static(field));
            }
            let expected = expected.map(|name| Person::Sudo(name.into()));
            assert_eq!(stated(&headers), expected, "{fields:?}");
        };
        check(&["anna"], Some("anna"));
        check(&["EXAMPLE\\anna.b-c@d"], Some("EXAMPLE\\anna.b-c@d"));
        check(&[], None);
        check(&[""], None);
        check(&["anna", "bob"], None);
        check(&["anna, uid 7"], None);
        check(&["anna)"], None);
        const LONG: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        check(&[LONG], None);
    }

    #[test]
    fn persons_are_told_with_their_source() {
        let user = |id, name: Option<&str>| SystemUser { id, name: name.map(Into::into) };
        let check = |person: Person, expected: &str| assert_eq!(person.to_string(), expected);
        check(Person::LoggedIn(user(1000, Some("anna"))), "login anna");
        check(Person::LoggedIn(user(1000, None)), "login uid 1000");
        check(Person::Sudo("anna".into()), "sudo by anna");
    }
}
