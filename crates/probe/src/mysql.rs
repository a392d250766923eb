//! MySQL and MariaDB: the server's greeting, a login, a query.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/PAGE_PROTOCOL.html>

use aws_lc_rs::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use weir_config::snapshot::{Credentials, ProbeTls, Secret, SqlProbe, SqlQuery};
use weir_core::monitor::ProbeOutcome;

use super::failure::{Failure, Step};
use super::probe_settings::ProbeSettings;
use super::sql::judge;
use super::wire::{Wire, said};

/// The protocol version in the greeting.
const VERSION: u8 = 10;
const LONG_PASSWORD: u32 = 1;
const CONNECT_WITH_DB: u32 = 1 << 3;
const PROTOCOL_41: u32 = 1 << 9;
const SSL: u32 = 1 << 11;
const SECURE_CONNECTION: u32 = 1 << 15;
const PLUGIN_AUTH: u32 = 1 << 19;
/// Capabilities that a server must have.
const NEEDED: u32 = PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTH;
/// The character set UTF-8 (`utf8_general_ci`).
const CHARSET: u8 = 33;
/// Maximum size of a packet in bytes.
const PACKET_BYTES_MAX: u32 = 1 << 16;

const NATIVE: &[u8] = b"mysql_native_password";
const CACHING_SHA2: &[u8] = b"caching_sha2_password";
/// Size of the server's random data, which is hashed with the password.
const NONCE_BYTES: usize = 20;
/// Maximum number of packets of a login: another method, its data, the result.
const LOGIN_PACKETS_MAX: usize = 8;

const OK: u8 = 0;
const MORE: u8 = 1;
const NULL: u8 = 0xfb;
const END: u8 = 0xfe;
const ERROR: u8 = 0xff;
/// Maximum number of columns in a result.
const COLUMNS_MAX: u64 = 4_096;

const QUIT: u8 = 1;
const QUERY: u8 = 3;

/// Waits for the greeting. Then logs in and sends the query, if configured.
pub(super) async fn ask(
    talk: &ProbeSettings<'_>,
    probe: &SqlProbe,
) -> Result<ProbeOutcome, Failure> {
    let mut session = Session { wire: Wire::open(talk, None).await?, sequence: 0, secret: None };
    let greeting = session.receive().await?;
    let greeting = match greeting.split_first() {
        Some((&VERSION, _)) => Greeting::of(&greeting).ok_or_else(malformed)?,
        Some((&ERROR, rest)) => return Err(session.error("greeting", rest)),
        _ => return Err(malformed()),
    };
    let Some(user) = &probe.user else {
        return Ok(ProbeOutcome::Passed);
    };
    session.wire.step(Step::LoggingIn);
    session.secret = Some(user.password.clone());
    let mut session = session.log_in(&greeting, user, probe).await?;
    session.wire.step(Step::Listening);
    if let Some(query) = &probe.query {
        session.query(query).await?;
    }
    session.command(QUIT, &[]).await?;
    Ok(ProbeOutcome::Passed)
}

/// A connection with numbered packets.
struct Session<'a> {
    wire: Wire<'a>,
    sequence: u8,
    /// The password, which messages must not show.
    secret: Option<Secret>,
}

/// The server's greeting.
#[derive(Debug, PartialEq, Eq)]
struct Greeting<'a> {
    capabilities: u32,
    nonce: Vec<u8>,
    method: &'a [u8],
}

impl<'a> Greeting<'a> {
    /// Parses a greeting of protocol version 10.
    fn of(packet: &'a [u8]) -> Option<Self> {
        let (_version_text, rest) = until_nul(packet.get(1..)?)?;
        // The bytes before contain the connection's number.
        let (first, rest) = rest.get(4..)?.split_first_chunk::<8>()?;
        let (&[_, lower_0, lower_1, _, _, _, upper_0, upper_1, _], rest) =
            rest.split_first_chunk::<9>()?;
        let capabilities = u32::from_le_bytes([lower_0, lower_1, upper_0, upper_1]);
        if capabilities & NEEDED != NEEDED {
            return Some(Self { capabilities, nonce: Vec::new(), method: b"" });
        }
        // The last four of the ten skipped bytes contain further capabilities of MariaDB. The second part of the nonce ends
        // with a NUL.
        let rest = rest.get(10..)?;
        let (second, rest) = rest.split_at_checked(NONCE_BYTES - first.len())?;
        let method = until_nul(rest.get(1..)?).map_or(rest.get(1..)?, |(method, _)| method);
        Some(Self { capabilities, nonce: [&first[..], second].concat(), method })
    }
}

impl<'a> Session<'a> {
    /// Logs in.
    async fn log_in(
        mut self,
        greeting: &Greeting<'_>,
        user: &Credentials,
        probe: &SqlProbe,
    ) -> Result<Self, Failure> {
        if greeting.capabilities & NEEDED != NEEDED {
            return Err(refused("the server is older than version 5.5".into()));
        }
        if let Some(tls) = &probe.tls {
            self = self.encrypt(greeting, probe, tls).await?;
        }
        let is_known = [NATIVE, CACHING_SHA2].contains(&greeting.method);
        let method = if is_known { greeting.method } else { NATIVE };
        let answer = answer_to(method, &user.password, &greeting.nonce).unwrap_or_default();
        let mut response = opening(probe, greeting);
        response.extend_from_slice(user.user.as_bytes());
        response.push(0);
        response.push(answer.len() as u8);
        response.extend_from_slice(&answer);
        if let Some(database) = &probe.database {
            response.extend_from_slice(database.as_bytes());
            response.push(0);
        }
        response.extend_from_slice(method);
        response.push(0);
        self.send(&response).await?;
        for _ in 0..LOGIN_PACKETS_MAX {
            let packet = self.receive().await?;
            match packet.split_first() {
                Some((&OK, _)) => return Ok(self),
                Some((&ERROR, rest)) => return Err(self.error("login", rest)),
                Some((&END, rest)) => self.switch(rest, user).await?,
                // The server has cached the password. The result follows.
                Some((&MORE, [3])) => {}
                Some((&MORE, [4])) => self.tell_password(user).await?,
                _ => return Err(malformed()),
            }
        }
        Err(Failure::Malformed("the login has no end".into()))
    }

    /// Starts TLS on the connection.
    async fn encrypt(
        mut self,
        greeting: &Greeting<'_>,
        probe: &SqlProbe,
        tls: &ProbeTls,
    ) -> Result<Self, Failure> {
        if greeting.capabilities & SSL == 0 {
            return Err(refused("the server has no TLS".into()));
        }
        self.send(&opening(probe, greeting)).await?;
        let wire = self.wire.upgrade(tls).await?;
        Ok(Self { wire, ..self })
    }

    /// Answers a request for another authentication method. The packet contains the name of the method, and random data.
    async fn switch(&mut self, packet: &[u8], user: &Credentials) -> Result<(), Failure> {
        let (method, nonce) = until_nul(packet).ok_or_else(malformed)?;
        let nonce = nonce.strip_suffix(&[0]).unwrap_or(nonce);
        let answer = answer_to(method, &user.password, nonce).ok_or_else(|| {
            let method = said(method, &[&user.password]);
            refused(format!("login: it wants {method}, which is not known here"))
        })?;
        self.send(&answer).await
    }

    /// Sends the password, because the server has not cached it.
    async fn tell_password(&mut self, user: &Credentials) -> Result<(), Failure> {
        if !self.wire.is_private() {
            let reason = "login: the server wants the password itself, which weir sends only over TLS: set `tls: true`";
            return Err(refused(reason.into()));
        }
        let mut password = user.password.expose().as_bytes().to_vec();
        password.push(0);
        self.send(&password).await
    }

    /// Sends the query, and judges the result.
    async fn query(&mut self, query: &SqlQuery) -> Result<(), Failure> {
        self.command(QUERY, query.text.as_bytes()).await?;
        let head = self.receive().await?;
        let columns = match head.split_first() {
            Some((&ERROR, rest)) => return Err(self.error("query", rest)),
            // The server requests a local file, which weir never sends.
            Some((&NULL, _)) => return Err(malformed()),
            Some((&OK, _)) => 0,
            _ => number(&mut &head[..])
                .filter(|count| *count <= COLUMNS_MAX)
                .ok_or_else(malformed)?,
        };
        let mut first = None;
        if columns > 0 {
            for _ in 0..columns {
                self.receive().await?;
            }
            if !is_end(&self.receive().await?) {
                return Err(malformed());
            }
            let row = self.receive().await?;
            match row.split_first() {
                Some((&ERROR, rest)) => return Err(self.error("query", rest)),
                _ if is_end(&row) => {}
                Some((&NULL, _)) => {}
                _ => first = Some(text(&mut &row[..]).ok_or_else(malformed)?.to_vec()),
            }
        }
        judge(query, first.as_deref()).map_err(refused)
    }

    /// Sends a command, whose packets are numbered from 0.
    async fn command(&mut self, command: u8, argument: &[u8]) -> Result<(), Failure> {
        self.sequence = 0;
        self.send(&[&[command], argument].concat()).await
    }

    async fn send(&mut self, payload: &[u8]) -> Result<(), Failure> {
        // The configuration limits queries to far less than the size at which packets must be split.
        let [a, b, c, _] = (payload.len() as u32).to_le_bytes();
        let packet = [&[a, b, c, self.sequence], payload].concat();
        self.sequence = self.sequence.wrapping_add(1);
        self.wire.send(&packet).await
    }

    async fn receive(&mut self) -> Result<Vec<u8>, Failure> {
        let [a, b, c, sequence] = self.wire.array().await?;
        if sequence != self.sequence {
            return Err(malformed());
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.wire.exact(u32::from_le_bytes([a, b, c, 0]) as usize).await
    }

    /// The failure for an error packet: `login: error 1045: Access denied for user 'weir'`.
    fn error(&self, step: &str, packet: &[u8]) -> Failure {
        let Some((code, text)) = packet.split_first_chunk::<2>() else { return malformed() };
        // A newer server sends an SQL state before the text.
        let text =
            if text.first() == Some(&b'#') { text.get(6..).unwrap_or_default() } else { text };
        let secrets: Vec<&Secret> = self.secret.iter().collect();
        let text = said(text, &secrets);
        refused(format!("{step}: error {}: {text}", u16::from_le_bytes(*code)))
    }
}

/// The common start of a TLS request and a login.
fn opening(probe: &SqlProbe, greeting: &Greeting<'_>) -> Vec<u8> {
    let database = if probe.database.is_some() { CONNECT_WITH_DB } else { 0 };
    let tls = if probe.tls.is_some() { SSL } else { 0 };
    let wanted = NEEDED | LONG_PASSWORD | database | tls;
    let mut bytes = (wanted & (greeting.capabilities | SSL)).to_le_bytes().to_vec();
    bytes.extend_from_slice(&PACKET_BYTES_MAX.to_le_bytes());
    bytes.push(CHARSET);
    bytes.extend_from_slice(&[0; 23]);
    bytes
}

/// The password, hashed as the method requires; `None`: the method is unknown.
fn answer_to(method: &[u8], password: &Secret, nonce: &[u8]) -> Option<Vec<u8>> {
    let password = password.expose().as_bytes();
    match method {
        NATIVE | CACHING_SHA2 if password.is_empty() => Some(Vec::new()),
        NATIVE => {
            let hash = |parts: &[&[u8]]| hash(&SHA1_FOR_LEGACY_USE_ONLY, parts);
            let once = hash(&[password]);
            Some(differing(&once, &hash(&[nonce, &hash(&[&once])])))
        }
        CACHING_SHA2 => {
            let hash = |parts: &[&[u8]]| hash(&SHA256, parts);
            let once = hash(&[password]);
            Some(differing(&once, &hash(&[&hash(&[&once]), nonce])))
        }
        _ => None,
    }
}

fn hash(algorithm: &'static Algorithm, parts: &[&[u8]]) -> Vec<u8> {
    digest(algorithm, &parts.concat()).as_ref().to_vec()
}

fn differing(one: &[u8], other: &[u8]) -> Vec<u8> {
    one.iter().zip(other).map(|(one, other)| one ^ other).collect()
}

/// Whether a packet marks the end of columns or rows.
fn is_end(packet: &[u8]) -> bool {
    packet.first() == Some(&END) && packet.len() < 9
}

/// The bytes before and after the first NUL.
fn until_nul(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(0, bytes)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

/// A length-encoded integer.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    let length = match first {
        0..=0xfa => {
            *bytes = rest;
            return Some(first.into());
        }
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        _ => return None,
    };
    let (number, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some(number.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// A length-encoded text.
fn text<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(number(bytes)?).ok()?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(text)
}

fn malformed() -> Failure {
    Failure::Malformed("not the protocol of MySQL".into())
}

fn refused(reason: String) -> Failure {
    Failure::Service("MySQL", reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &[u8; 20] = b"0123456789abcdefghij";

    fn hex(bytes: &[u8]) -> String {
        data_encoding::HEXLOWER.encode(bytes)
    }

    /// The hashes were computed with Python's hashlib, from the documentation of the methods.
    #[test]
    fn passwords_are_hashed() {
        let answer = |method, password| answer_to(method, &Secret::new(password), NONCE);
        let native = answer(NATIVE, "secret").unwrap();
        assert_eq!(hex(&native), "f5cac3f3b3df2133feb57db682c71e6ed433a988");
        let sha2 = answer(CACHING_SHA2, "secret").unwrap();
        assert_eq!(hex(&sha2), "7e4adda2f2d5ef09b4147518becb0cee2939376203650a8c2bb2815959364bd0");
        assert_eq!(answer(NATIVE, ""), Some(Vec::new()));
        assert_eq!(answer(b"mysql_clear_password", "secret"), None);
    }

    fn greeting() -> Vec<u8> {
        let mut packet = b"\x0a8.0.36\0\x07\0\0\0".to_vec();
        packet.extend_from_slice(&NONCE[..8]);
        packet.extend_from_slice(b"\0\xff\xff\xff\x02\0\xff\xdf\x15\0\0\0\0\0\0\0\0\0\0");
        packet.extend_from_slice(&NONCE[8..]);
        packet.extend_from_slice(b"\0caching_sha2_password\0");
        packet
    }

    #[test]
    fn greetings() {
        let packet = greeting();
        let capabilities = 0xdfff_ffff;
        let expected = Greeting { capabilities, nonce: NONCE.to_vec(), method: CACHING_SHA2 };
        assert_eq!(Greeting::of(&packet), Some(expected));
        // Some versions omit the NUL after the method.
        assert_eq!(Greeting::of(&packet[..packet.len() - 1]).unwrap().method, CACHING_SHA2);
        for length in 0..packet.len() - CACHING_SHA2.len() - 1 {
            assert_eq!(Greeting::of(&packet[..length]), None, "{length}");
        }
    }

    #[test]
    fn numbers_and_texts() {
        let check = |bytes: &[u8], expected| assert_eq!(number(&mut &*bytes), expected);
        check(&[0], Some(0));
        check(&[0xfa], Some(250));
        check(&[0xfb], None);
        check(&[0xfc, 1, 2], Some(0x201));
        check(&[0xfd, 1, 2, 3], Some(0x0003_0201));
        check(&[0xfe, 1, 0, 0, 0, 0, 0, 0, 0x80], Some(0x8000_0000_0000_0001));
        check(&[0xfe, 1, 0, 0, 0], None);
        check(&[0xff], None);
        check(&[], None);
        assert_eq!(text(&mut &b"\x02okay"[..]), Some(&b"ok"[..]));
        assert_eq!(text(&mut &b"\x05okay"[..]), None);
        assert_eq!(text(&mut &b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff"[..]), None);
    }
}
