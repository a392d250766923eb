//! Database, mail and directory servers, healthy and faulty.

use weir_config::snapshot::{
    Credentials, LdapProbe, RedisProbe, RedisRole, Secret, SmtpProbe, SqlProbe, SqlQuery,
};
use weir_testing::Random;

use super::*;

/// A command to a server, and the server's answer.
type Turn = (Vec<u8>, Vec<u8>);

fn turn(told: impl AsRef<[u8]>, answer: impl AsRef<[u8]>) -> Turn {
    (told.as_ref().to_vec(), answer.as_ref().to_vec())
}

/// A server that answers the expected commands in order, and closes the connection after any other command.
async fn conversation(turns: Vec<Turn>) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            for (expected, answer) in &turns {
                let mut told = vec![0; expected.len()];
                let _ = stream.read_exact(&mut told).await;
                if told != *expected || stream.write_all(answer).await.is_err() {
                    break;
                }
            }
        }
    });
    Address::Socket(address)
}

/// A server that sends all its data at once.
async fn monologue(words: Vec<u8>) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let words = words.clone();
            tokio::spawn(async move {
                let _ = stream.write_all(&words).await;
                let _ = stream.shutdown().await;
                let mut told = Vec::new();
                let _ = stream.read_to_end(&mut told).await;
            });
        }
    });
    Address::Socket(address)
}

fn login(user: &str, password: &str) -> Option<Credentials> {
    Some(Credentials { user: user.into(), password: Secret::new(password) })
}

fn redis(credentials: Option<Credentials>, role: Option<RedisRole>) -> MonitorKind {
    MonitorKind::Redis(RedisProbe { credentials, role, tls: None })
}

const PING: &str = "*1\r\n$4\r\nPING\r\n";
const AUTH: &str = "*2\r\n$4\r\nAUTH\r\n$7\r\nhunter2\r\n";
const ROLE: &str = "*1\r\n$4\r\nROLE\r\n";

#[tokio::test]
async fn redis_serves() {
    let check = async |kind: MonitorKind, turns: &[(&str, &str)], expected: &str| {
        let turns = turns.iter().map(|(told, answer)| turn(told, answer)).collect();
        assert_eq!(result(&conversation(turns).await, kind).await, expected);
    };
    let pong = (PING, "+PONG\r\n");
    let master = (ROLE, "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n");
    let replica =
        (ROLE, "*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:6379\r\n$9\r\nconnected\r\n:0\r\n");
    check(redis(None, None), &[pong], "passed").await;
    check(redis(None, Some(RedisRole::Master)), &[pong, master], "passed").await;
    check(redis(None, Some(RedisRole::Replica)), &[pong, replica], "passed").await;
    let wrong_role = "Redis: its role is slave";
    check(redis(None, Some(RedisRole::Master)), &[pong, replica], wrong_role).await;
    check(redis(login("", "hunter2"), None), &[(AUTH, "+OK\r\n"), pong], "passed").await;
    let named = "*3\r\n$4\r\nAUTH\r\n$5\r\nprobe\r\n$7\r\nhunter2\r\n";
    check(redis(login("probe", "hunter2"), None), &[(named, "+OK\r\n"), pong], "passed").await;
    for (turns, credentials, expected) in [
        (
            (PING, "-NOAUTH Authentication required.\r\n"),
            None,
            "PING: NOAUTH Authentication required.",
        ),
        ((PING, "-LOADING Redis is loading\r\n"), None, "PING: LOADING Redis is loading"),
        ((PING, "HTTP/1.1 400 Bad Request\r\n"), None, "PING: HTTP/1.1 400 Bad Request"),
        (
            (AUTH, "-WRONGPASS invalid username-password pair\r\n"),
            login("", "hunter2"),
            "AUTH: WRONGPASS",
        ),
        // Servers before version 6 repeat the words of unknown commands.
        (
            (AUTH, "-ERR unknown command `AUTH`, with args beginning with: `hunter2`\r\n"),
            login("", "hunter2"),
            "AUTH: ERR",
        ),
        ((AUTH, "-hunter2\r\n"), login("", "hunter2"), "AUTH: ***"),
        ((AUTH, "hunter2\r\n"), login("", "hunter2"), "AUTH: no answer of Redis"),
    ] {
        check(redis(credentials, None), &[turns], &format!("Redis: {expected}")).await;
    }
    let told = "Redis: PING: ERR no ***";
    let turns = [(AUTH, "+OK\r\n"), (PING, "-ERR no hunter2\r\n")];
    check(redis(login("", "hunter2"), None), &turns, told).await;
}

fn smtp(tls: Option<ProbeTls>) -> MonitorKind {
    MonitorKind::Smtp(SmtpProbe { name: "weir.example".into(), tls })
}

const EHLO: &str = "EHLO weir.example\r\n";

#[tokio::test]
async fn smtp_greets() {
    let check = async |turns: &[(&str, &str)], expected: &str| {
        let turns = turns.iter().map(|(told, answer)| turn(told, answer)).collect();
        assert_eq!(result(&conversation(turns).await, smtp(None)).await, expected);
    };
    let hello = ("", "220 mail.example ESMTP\r\n");
    let known = (EHLO, "250-mail.example\r\n250-PIPELINING\r\n250 8BITMIME\r\n");
    check(&[hello, known, ("QUIT\r\n", "221 bye\r\n")], "passed").await;
    check(&[("", "220-wait\r\n220 go\n"), known, ("QUIT\r\n", "")], "passed").await;
    check(&[("", "554 no\x1b[2J\r\n")], "SMTP: greeting: 554 no\\u{1b}[2J").await;
    check(&[hello, (EHLO, "502-a\r\n502 b\r\n")], "SMTP: EHLO: 502 a").await;
    check(&[("", "SSH-2.0-OpenSSH\r\n")], "malformed response: no reply of SMTP: SSH-2.0-OpenSSH")
        .await;
    check(&[hello], "connection closed (waiting for the expected answer)").await;
    let endless = "220-x\r\n".repeat(20_000);
    check(&[("", &endless)], "malformed response: more than 64 KiB").await;
    let long = "2".repeat(100_000);
    check(&[("", &long)], "malformed response: more than 64 KiB").await;
}

/// A TLS server whose certificate is trusted only by clients that do not verify it.
fn acceptor() -> TlsAcceptor {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = certificate_for(&["mail.example"]).self_signed(&key).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// A server that begins unencrypted, and continues with TLS.
async fn upgrading(clear: Vec<Turn>, encrypted: Vec<Turn>) -> Address {
    async fn talk<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(
        stream: &mut S,
        turns: &[Turn],
    ) -> bool {
        for (expected, answer) in turns {
            let mut told = vec![0; expected.len()];
            let _ = stream.read_exact(&mut told).await;
            if told != *expected
                || stream.write_all(answer).await.is_err()
                || stream.flush().await.is_err()
            {
                return false;
            }
        }
        true
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = acceptor();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            if !talk(&mut stream, &clear).await {
                continue;
            }
            if let Ok(mut stream) = acceptor.accept(stream).await {
                talk(&mut stream, &encrypted).await;
            }
        }
    });
    Address::Socket(address)
}

const ANY_CERTIFICATE: ProbeTls = ProbeTls { verify: false, name: None, is_upgrade: false };
const STARTTLS: ProbeTls = ProbeTls { is_upgrade: true, ..ANY_CERTIFICATE };

#[tokio::test]
async fn smtp_over_tls() {
    let hello = turn("", "220 mail.example\r\n");
    let offer = turn(EHLO, "250-mail.example\r\n250 StartTLS\r\n");
    let known = turn(EHLO, "250 mail.example\r\n");
    let quit = turn("QUIT\r\n", "221 bye\r\n");
    let start = |answer: &str| turn("STARTTLS\r\n", answer);
    let from_the_start = vec![hello.clone(), known.clone(), quit.clone()];
    let server = upgrading(Vec::new(), from_the_start).await;
    assert_eq!(result(&server, smtp(Some(ANY_CERTIFICATE))).await, "passed");
    let clear = |answer| vec![hello.clone(), offer.clone(), start(answer)];
    let encrypted = vec![known.clone(), quit.clone()];
    let server = upgrading(clear("220 go\r\n"), encrypted.clone()).await;
    assert_eq!(result(&server, smtp(Some(STARTTLS))).await, "passed");
    // Bytes that an attacker injects before TLS starts must not count as received over TLS.
    let server = upgrading(clear("220 go\r\n250 mail.example\r\n"), encrypted.clone()).await;
    let injected = "malformed response: more came before TLS began";
    assert_eq!(result(&server, smtp(Some(STARTTLS))).await, injected);
    let server = upgrading(vec![hello.clone(), known], encrypted.clone()).await;
    let plain = "SMTP: EHLO: it does not offer STARTTLS";
    assert_eq!(result(&server, smtp(Some(STARTTLS))).await, plain);
    let server = upgrading(clear("454 not now\r\n"), encrypted).await;
    assert_eq!(result(&server, smtp(Some(STARTTLS))).await, "SMTP: STARTTLS: 454 not now");
}

fn ldap(credentials: Option<Credentials>, base: &str, tls: Option<ProbeTls>) -> MonitorKind {
    let (base, attribute) = (base.into(), "objectClass".into());
    MonitorKind::Ldap(LdapProbe { credentials, base, attribute, tls })
}

const ANONYMOUS: &[u8] = b"\x30\x0c\x02\x01\x02\x60\x07\x02\x01\x03\x04\x00\x80\x00";
const BOUND: &[u8] = b"\x30\x0c\x02\x01\x02\x61\x07\x0a\x01\x00\x04\x00\x04\x00";
const SEARCH: &[u8] = b"\x30\x2a\x02\x01\x03\x63\x25\x04\x00\x0a\x01\x00\x0a\x01\x00\x02\x01\x00\x02\x01\x00\x01\x01\x00\
                        \x87\x0bobjectClass\x30\x05\x04\x031.1";
const ENTRY: &[u8] = b"\x30\x09\x02\x01\x03\x64\x04\x04\x00\x30\x00";
const FOUND: &[u8] = b"\x30\x0c\x02\x01\x03\x65\x07\x0a\x01\x00\x04\x00\x04\x00";

#[tokio::test]
async fn ldap_has_the_entry() {
    let check = async |kind: MonitorKind, turns: Vec<Turn>, expected: &str| {
        assert_eq!(result(&conversation(turns).await, kind).await, expected);
    };
    let bound = turn(ANONYMOUS, BOUND);
    let search = |answers: &[&[u8]]| turn(SEARCH, answers.concat());
    let anonymous = || ldap(None, "", None);
    check(anonymous(), vec![bound.clone(), search(&[ENTRY, FOUND])], "passed").await;
    // Lengths in their long form, and a reference before the entry.
    let long = b"\x30\x84\x00\x00\x00\x0c\x02\x01\x02\x61\x07\x0a\x01\x00\x04\x00\x04\x00";
    let reference = b"\x30\x09\x02\x01\x03\x73\x04\x04\x02a:";
    let turns = vec![turn(ANONYMOUS, long), search(&[reference, ENTRY, FOUND])];
    check(anonymous(), turns, "passed").await;
    let nothing = "LDAP: search: no such entry with this attribute";
    check(anonymous(), vec![bound.clone(), search(&[FOUND])], nothing).await;
    let missing = b"\x30\x0c\x02\x01\x03\x65\x07\x0a\x01\x20\x04\x00\x04\x00";
    let turns = vec![bound.clone(), search(&[missing])];
    check(anonymous(), turns, "LDAP: search: noSuchObject (32)").await;
    let simple = b"\x30\x17\x02\x01\x02\x60\x12\x02\x01\x03\x04\x04cn=a\x80\x07hunter2";
    let known = || ldap(login("cn=a", "hunter2"), "", None);
    check(known(), vec![turn(simple, BOUND), search(&[ENTRY, FOUND])], "passed").await;
    let wrong = b"\x30\x18\x02\x01\x02\x61\x13\x0a\x01\x31\x04\x00\x04\x0cnot: hunter2";
    check(known(), vec![turn(simple, wrong)], "LDAP: bind: invalidCredentials (49): not: ***")
        .await;
    let notice = b"\x30\x10\x02\x01\x00\x78\x0b\x0a\x01\x34\x04\x00\x04\x04down";
    let turns = vec![turn(ANONYMOUS, notice)];
    check(anonymous(), turns, "LDAP: disconnected: unavailable (52): down").await;
    let turns = vec![turn(ANONYMOUS, FOUND)];
    check(anonymous(), turns, "malformed response: an answer to another request").await;
    let endless = vec![bound, search(&[&ENTRY.repeat(200)])];
    check(anonymous(), endless, "malformed response: the answer to a search has no end").await;
}

#[tokio::test]
async fn ldap_over_tls() {
    let encrypted = vec![turn(ANONYMOUS, BOUND), turn(SEARCH, [ENTRY, FOUND].concat())];
    let server = upgrading(Vec::new(), encrypted.clone()).await;
    assert_eq!(result(&server, ldap(None, "", Some(ANY_CERTIFICATE))).await, "passed");
    let start = b"\x30\x1d\x02\x01\x01\x77\x18\x80\x161.3.6.1.4.1.1466.20037";
    let answer = |code: u8| {
        [&b"\x30\x0c\x02\x01\x01\x78\x07\x0a\x01"[..], &[code], b"\x04\x00\x04\x00"].concat()
    };
    let server = upgrading(vec![turn(start, answer(0))], encrypted.clone()).await;
    assert_eq!(result(&server, ldap(None, "", Some(STARTTLS))).await, "passed");
    let server = upgrading(vec![turn(start, answer(2))], encrypted).await;
    let refused = "LDAP: StartTLS: protocolError (2)";
    assert_eq!(result(&server, ldap(None, "", Some(STARTTLS))).await, refused);
}

fn sql(user: Option<Credentials>, query: Option<(&str, Option<&str>)>) -> SqlProbe {
    let query =
        query.map(|(text, value)| SqlQuery { text: text.into(), value: value.map(Into::into) });
    SqlProbe { user, database: None, query, tls: None }
}

/// A packet of MySQL.
fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    [&[payload.len() as u8, 0, 0, sequence], payload].concat()
}

/// A greeting whose random data consists of `x`.
fn mysql_greeting() -> Vec<u8> {
    let start = b"\x0a8.0.36\0\x07\0\0\0xxxxxxxx\0\xff\xff\x2d\x02\0\xff\xdf\x15";
    packet(0, &[&start[..], &[0; 10], b"xxxxxxxxxxxx\0mysql_native_password\0"].concat())
}

/// A login of user `weir` without a password.
fn mysql_login() -> Vec<u8> {
    let start = b"\x01\x82\x08\0\0\0\x01\0\x21";
    packet(1, &[&start[..], &[0; 23], b"weir\0\0mysql_native_password\0"].concat())
}

const MYSQL_OK: &[u8] = b"\0\0\0\x02\0\0\0";

/// A result with one row and one column.
fn mysql_row(value: &[u8]) -> Vec<u8> {
    [
        packet(1, b"\x01"),
        packet(2, b"\x03def\0\0\0\x01a\0\x0c\x3f\0\x01\0\0\0\x08\x81\0\0\0\0"),
        packet(3, b"\xfe\0\0\x02\0"),
        packet(4, value),
        packet(5, b"\xfe\0\0\x02\0"),
    ]
    .concat()
}

#[tokio::test]
async fn mysql_serves() {
    let check = async |probe: SqlProbe, turns: Vec<Turn>, expected: &str| {
        let kind = MonitorKind::Mysql(probe);
        assert_eq!(result(&conversation(turns).await, kind).await, expected);
    };
    let weir = || login("weir", "");
    let hello = turn("", mysql_greeting());
    let known = turn(mysql_login(), packet(2, MYSQL_OK));
    check(sql(None, None), vec![hello.clone()], "passed").await;
    check(sql(weir(), None), vec![hello.clone(), known.clone()], "passed").await;
    let full = packet(0, b"\xff\x10\x04Too many connections");
    check(
        sql(None, None),
        vec![turn("", full)],
        "MySQL: greeting: error 1040: Too many connections",
    )
    .await;
    let denied = packet(2, b"\xff\x15\x04#28000Access denied");
    let turns = vec![hello.clone(), turn(mysql_login(), denied)];
    check(sql(weir(), None), turns, "MySQL: login: error 1045: Access denied").await;
    let asked = |answer: Vec<u8>| {
        vec![hello.clone(), known.clone(), turn(packet(0, b"\x03SELECT 1"), answer)]
    };
    let query = |value| sql(weir(), Some(("SELECT 1", value)));
    check(query(Some("1")), asked(mysql_row(b"\x011")), "passed").await;
    check(query(None), asked(mysql_row(b"\xfb")), "passed").await;
    check(query(Some("1")), asked(mysql_row(b"\x010")), "MySQL: query: `0` where `1` is expected")
        .await;
    check(
        query(Some("1")),
        asked(mysql_row(b"\xfb")),
        "MySQL: query: no value where `1` is expected",
    )
    .await;
    check(query(None), asked(packet(1, MYSQL_OK)), "passed").await;
    let wrong = packet(1, b"\xff\x28\x04#42000syntax");
    check(query(None), asked(wrong), "MySQL: query: error 1064: syntax").await;
    // The server requests a local file of this host.
    let not_it = "malformed response: not the protocol of MySQL";
    check(query(None), asked(packet(1, b"\xfb/etc/passwd")), not_it).await;
}

#[tokio::test]
async fn mysql_switches_the_method() {
    let hello = turn("", mysql_greeting());
    // The hash of `secret` and the random data of [`mysql_greeting`], computed with Python's hashlib.
    let native =
        data_encoding::HEXLOWER.decode(b"177cd8346a7f9999533648b7033dd8ab30e5a5af").unwrap();
    let sha2 = data_encoding::HEXLOWER
        .decode(b"255743db6ea2cc26bb6c22380d0b3d3846bcd4e280048880ea9fa63ac0381888")
        .unwrap();
    let start = b"\x01\x82\x08\0\0\0\x01\0\x21";
    let response = packet(
        1,
        &[&start[..], &[0; 23], b"weir\0\x14", &native, b"mysql_native_password\0"].concat(),
    );
    let switch = |method: &str| {
        packet(2, &[b"\xfe", method.as_bytes(), b"\0xxxxxxxxxxxxxxxxxxxx\0"].concat())
    };
    let check = async |turns: &[Turn], expected: &str| {
        let turns = [std::slice::from_ref(&hello), turns].concat();
        let kind = MonitorKind::Mysql(sql(login("weir", "secret"), None));
        assert_eq!(result(&conversation(turns).await, kind).await, expected);
    };
    check(&[turn(&response, packet(2, MYSQL_OK))], "passed").await;
    let switched = turn(&response, switch("caching_sha2_password"));
    let fast = [packet(4, b"\x01\x03"), packet(5, MYSQL_OK)].concat();
    check(&[switched.clone(), turn(packet(3, &sha2), fast)], "passed").await;
    let full = turn(packet(3, &sha2), packet(4, b"\x01\x04"));
    let reason = "MySQL: login: the server wants the password itself, which weir sends only over TLS: set `tls: true`";
    check(&[switched, full], reason).await;
    let clear = turn(&response, switch("mysql_clear_password"));
    let reason = "MySQL: login: it wants mysql_clear_password, which is not known here";
    check(&[clear], reason).await;
}

/// A message of PostgreSQL.
fn postgresql(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[kind][..], &(content.len() as u32 + 4).to_be_bytes(), content].concat()
}

const PG_STARTUP: &[u8] = b"\0\0\0\x29\0\x03\0\0user\0weir\0application_name\0weir\0\0";

/// A successful login: parameters, a key for cancellation, readiness for queries.
fn pg_ready() -> Vec<u8> {
    [
        postgresql(b'R', &[0; 4]),
        postgresql(b'S', b"server_version\x0015.4\0"),
        postgresql(b'K', &[7; 8]),
        postgresql(b'Z', b"I"),
    ]
    .concat()
}

fn pg_row(value: &[u8]) -> Vec<u8> {
    [
        postgresql(b'T', b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0"),
        postgresql(b'D', &[b"\0\x01", value].concat()),
        postgresql(b'C', b"SELECT 1\0"),
        postgresql(b'Z', b"I"),
    ]
    .concat()
}

#[tokio::test]
async fn postgresql_serves() {
    let check = async |probe: SqlProbe, turns: Vec<Turn>, expected: &str| {
        let kind = MonitorKind::Postgresql(probe);
        assert_eq!(result(&conversation(turns).await, kind).await, expected);
    };
    let asks = |answer: Vec<u8>| vec![turn(PG_STARTUP, answer)];
    let error = |code: &str, text: &str| {
        postgresql(b'E', format!("SFATAL\0C{code}\0M{text}\0\0").as_bytes())
    };
    check(sql(None, None), asks(postgresql(b'R', b"\0\0\0\x0a")), "passed").await;
    check(sql(None, None), asks(error("28000", "no entry")), "passed").await;
    let starting = "PostgreSQL: greeting: 57P03: the database system is starting up";
    check(sql(None, None), asks(error("57P03", "the database system is starting up")), starting)
        .await;
    let weir = |password| login("weir", password);
    check(sql(weir(""), None), asks(pg_ready()), "passed").await;
    let md5 = turn(PG_STARTUP, postgresql(b'R', b"\0\0\0\x05\x01\x02\x03\x04"));
    let hashed = postgresql(b'p', b"md512b54bc7b57fbba1959ba01ec530395c\0");
    check(sql(weir("secret"), None), vec![md5.clone(), turn(&hashed, pg_ready())], "passed").await;
    let reason = "PostgreSQL: login: the server asks for a password: give `password`";
    check(sql(weir(""), None), vec![md5.clone()], reason).await;
    let denied = vec![md5, turn(hashed, error("28P01", "no: secret"))];
    check(sql(weir("secret"), None), denied, "PostgreSQL: login: 28P01: no: ***").await;
    let clear = asks(postgresql(b'R', b"\0\0\0\x03"));
    let reason = "PostgreSQL: login: the server asks for the password itself, which weir sends only over TLS: set `tls: true`";
    check(sql(weir("secret"), None), clear, reason).await;
    let query = |value| sql(weir(""), Some(("SELECT 1", value)));
    let asked =
        |answer| vec![turn(PG_STARTUP, pg_ready()), turn(postgresql(b'Q', b"SELECT 1\0"), answer)];
    check(query(Some("1")), asked(pg_row(b"\0\0\0\x011")), "passed").await;
    let other = "PostgreSQL: query: `0` where `1` is expected";
    check(query(Some("1")), asked(pg_row(b"\0\0\0\x010")), other).await;
    let none = "PostgreSQL: query: no value where `1` is expected";
    check(query(Some("1")), asked(pg_row(b"\xff\xff\xff\xff")), none).await;
    let failed = [error("42601", "syntax error"), postgresql(b'Z', b"I")].concat();
    check(query(None), asked(failed), "PostgreSQL: query: 42601: syntax error").await;
}

/// The unhashed password is sent only over TLS. A server without TLS does not receive it.
#[tokio::test]
async fn databases_over_tls() {
    let request = b"\0\0\0\x08\x04\xd2\x16\x2f";
    let clear = turn(PG_STARTUP, postgresql(b'R', b"\0\0\0\x03"));
    let told = turn(postgresql(b'p', b"secret\0"), pg_ready());
    let server = upgrading(vec![turn(request, "S")], vec![clear, told]).await;
    let probe = || SqlProbe { tls: Some(ANY_CERTIFICATE), ..sql(login("weir", "secret"), None) };
    assert_eq!(result(&server, MonitorKind::Postgresql(probe())).await, "passed");
    let server = upgrading(vec![turn(request, "N")], Vec::new()).await;
    let without = "PostgreSQL: the server has no TLS";
    assert_eq!(result(&server, MonitorKind::Postgresql(probe())).await, without);

    let asked = b"\x01\x8a\x08\0\0\0\x01\0\x21";
    let request = packet(1, &[&asked[..], &[0; 23]].concat());
    let native =
        data_encoding::HEXLOWER.decode(b"177cd8346a7f9999533648b7033dd8ab30e5a5af").unwrap();
    let response = packet(
        2,
        &[&asked[..], &[0; 23], b"weir\0\x14", &native, b"mysql_native_password\0"].concat(),
    );
    let sha2 = data_encoding::HEXLOWER
        .decode(b"255743db6ea2cc26bb6c22380d0b3d3846bcd4e280048880ea9fa63ac0381888")
        .unwrap();
    let switch = packet(3, b"\xfecaching_sha2_password\0xxxxxxxxxxxxxxxxxxxx\0");
    let turns = vec![
        turn(&response, switch),
        turn(packet(4, &sha2), packet(5, b"\x01\x04")),
        turn(packet(6, b"secret\0"), packet(7, MYSQL_OK)),
    ];
    let mut greeting = mysql_greeting();
    let server = upgrading(vec![turn("", &greeting), turn(&request, "")], turns).await;
    assert_eq!(result(&server, MonitorKind::Mysql(probe())).await, "passed");
    // The server does not announce TLS.
    let lower = memchr::memmem::find(&greeting, b"\xff\xff\x2d").unwrap() + 1;
    greeting[lower] &= !0x08;
    let server = upgrading(vec![turn("", &greeting)], Vec::new()).await;
    assert_eq!(result(&server, MonitorKind::Mysql(probe())).await, "MySQL: the server has no TLS");
}

/// Whatever bytes a server sends, the probe ends, and passes only with the complete answer.
#[tokio::test]
async fn hostile_answers_end_the_probe() {
    let redis_words = b"+OK\r\n+PONG\r\n*3\r\n$6\r\nmaster\r\n".to_vec();
    let mysql_words = [mysql_greeting(), packet(2, MYSQL_OK), mysql_row(b"\x011")].concat();
    let query = || Some(("SELECT 1", Some("1")));
    let cases: [(MonitorKind, Vec<u8>, usize); 5] = [
        (redis(login("", "a"), Some(RedisRole::Master)), redis_words, 0),
        (smtp(None), b"220 a\r\n250-b\r\n250 c\r\n".to_vec(), 0),
        (ldap(None, "", None), [BOUND, ENTRY, FOUND].concat(), 0),
        // Bytes after the row do not matter.
        (MonitorKind::Mysql(sql(login("weir", ""), query())), mysql_words, 9),
        (
            MonitorKind::Postgresql(sql(login("weir", ""), query())),
            [pg_ready(), pg_row(b"\0\0\0\x011")].concat(),
            0,
        ),
    ];
    for (kind, words, idle) in cases {
        assert_eq!(
            result(&monologue(words.clone()).await, kind.clone()).await,
            "passed",
            "{kind:?}"
        );
        for length in 0..words.len() - idle {
            let cut = result(&monologue(words[..length].to_vec()).await, kind.clone()).await;
            assert_ne!(cut, "passed", "{kind:?}: {length} bytes");
        }
        let mut random = Random::new(19);
        for _ in 0..300 {
            let mut broken = words.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(broken.len());
                match random.below(4) {
                    0 => broken[at] = 0xff,
                    1 => broken[at] ^= 1 << random.below(8),
                    2 => broken.insert(at, random.below(256) as u8),
                    _ => drop(broken.drain(at..(at + 1 + random.below(8)).min(broken.len()))),
                }
                if broken.is_empty() {
                    break;
                }
            }
            // The probe must return: no panic and no endless wait.
            result(&monologue(broken).await, kind.clone()).await;
        }
        for fill in [0x00, 0x30, b'*', b'2', 0x7f, 0xff] {
            let endless = result(&monologue(vec![fill; 300_000]).await, kind.clone()).await;
            assert_ne!(endless, "passed", "{kind:?}: {fill}");
        }
    }
}
