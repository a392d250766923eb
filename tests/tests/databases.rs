//! Monitors that log in to real databases, if these are installed.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use weir_testing::skip_though_strict;
use weir_tests::member::Member;
use weir_tests::ports::Lease;
use weir_tests::process::Process;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{tls, tools};

/// Longer than the start of a database, and longer than any monitor here needs to change a member's state.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(60);
/// The user id of the databases, which refuse to run as root.
const NOBODY: u32 = 65_534;

/// The path of a database program. `None`: it is not installed or cannot run here; the reason is printed.
fn program(name: &str, folders: &str) -> Option<PathBuf> {
    if !rustix::process::geteuid().is_root() {
        skip_though_strict("databases are started as another user, which needs root");
        return None;
    }
    let versions = fs::read_dir(folders).into_iter().flatten().flatten();
    let of_versions = versions.map(|version| version.path().join("bin").join(name));
    let found = of_versions.filter(|path| path.is_file()).max().or_else(|| tools::find(name));
    if found.is_none() {
        skip_though_strict(&format!("{name} is not installed"));
    }
    found
}

/// A folder that the databases' user owns.
fn folder(purpose: &str) -> TempDir {
    let folder = TempDir::new(purpose);
    give(folder.path());
    folder
}

fn give(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).expect("another owner");
}

/// A command that runs as the databases' user.
fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
    command
}

/// A file that only the databases' user can read. Databases require that for their keys.
fn private(folder: &TempDir, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.write(name, contents);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("permissions");
    give(&path);
    path
}

/// The certificate and key of `shop.example` in files for a database.
fn certificate(folder: &TempDir) -> [PathBuf; 2] {
    ["shop-rsa.crt", "shop-rsa.key"]
        .map(|name| private(folder, name, fs::read(tls::file(name)).expect("a file of examples")))
}

/// Starts a database as the databases' user.
fn start(folder: &TempDir, program: &Path, arguments: &[String], address: SocketAddr) -> Process {
    let setpriv = tools::find("setpriv").expect("setpriv");
    let program = program.to_string_lossy();
    let user = ["--reuid=65534", "--regid=65534", "--clear-groups", &*program];
    let words: Vec<&str> = user.into_iter().chain(arguments.iter().map(String::as_str)).collect();
    let mut process = Process::start(&setpriv, &words, &folder.path().join("output.log"));
    process.wait_until_listening(&[address]);
    process
}

/// Checks that the member is up with each monitor in `up`, and down for the given reason with each one in `down`.
fn check(port: u16, up: &[&str], down: &[(&str, &str)]) {
    let member = Member::named("one");
    let monitors = |monitors: &str| {
        let pace = "interval: 1s, timeout: 1s, rise: 1, fall: 1";
        Setup::new(&[member.address()])
            .pool(&format!("monitors: [ {{ port: {port}, {pace}, {monitors} }} ]"))
    };
    for monitor in up {
        let proxy = Proxy::start(&monitors(monitor));
        proxy.wait_for_member_state(member.address(), "up", CHANGE_TIMEOUT);
    }
    for (monitor, reason) in down {
        let proxy = Proxy::start(&monitors(monitor));
        proxy.wait_for_member_state(member.address(), "down", CHANGE_TIMEOUT);
        let report = proxy.admin_get("/v1/pools/members");
        assert!(report.contains(reason), "{monitor}: {report}");
        assert!(!report.contains("hunter2"), "{report}");
    }
}

const POSTGRESQL_HBA: &str = "host all trusted 127.0.0.1/32 trust\n\
                              host all hashed 127.0.0.1/32 md5\n\
                              host all clear 127.0.0.1/32 password\n\
                              host all all 127.0.0.1/32 scram-sha-256\n";
const POSTGRESQL_USERS: &str = "CREATE ROLE trusted LOGIN;\n\
                                CREATE ROLE scram LOGIN PASSWORD 'hunter2';\n\
                                CREATE ROLE clear LOGIN PASSWORD 'hunter2';\n\
                                SET password_encryption = 'md5';\n\
                                CREATE ROLE hashed LOGIN PASSWORD 'hunter2';\n";

#[test]
fn monitors_log_in_to_postgresql() {
    let Some(server) = program("postgres", "/usr/lib/postgresql") else { return };
    let folder = folder("postgresql");
    let data = folder.path().join("data");
    let data = data.to_string_lossy();
    let initdb = fs::canonicalize(&server).expect("a file").with_file_name("initdb");
    tools::run(
        as_nobody(&initdb)
            .args(["-D", &*data, "-U", "admin", "-A", "scram-sha-256", "-N", "--no-instructions"])
            .args(["--pwfile", &private(&folder, "password", "hunter2\n").to_string_lossy()]),
    );
    let hba = private(&folder, "hba.conf", POSTGRESQL_HBA);
    let users = private(&folder, "users.sql", POSTGRESQL_USERS);
    let single =
        format!("exec {} --single -j -D {data} postgres < {}", server.display(), users.display());
    // In single-user mode, an empty line ends a statement.
    private(&folder, "users.sql", POSTGRESQL_USERS.replace('\n', "\n\n"));
    tools::run(as_nobody(Path::new("/bin/sh")).args(["-ec", &single]));
    let [certificate, key] = certificate(&folder);
    let lease = Lease::new();
    let port = lease.address().port();
    let settings = [
        format!("port={port}"),
        "listen_addresses=127.0.0.1".into(),
        format!("unix_socket_directories={}", folder.path().display()),
        format!("hba_file={}", hba.display()),
        "ssl=on".into(),
        format!("ssl_cert_file={}", certificate.display()),
        format!("ssl_key_file={}", key.display()),
    ];
    let mut arguments = vec!["-D".to_owned(), data.clone().into_owned()];
    arguments.extend(settings.into_iter().flat_map(|setting| ["-c".to_owned(), setting]));
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let _process = start(&folder, &server, &arguments, address);
    let tls = "tls: true, verify: false, host: shop.example";
    check(
        port,
        &[
            "type: postgresql",
            "type: postgresql, user: trusted, database: postgres, query: \"SELECT pg_is_in_recovery()\", value: f",
            "type: postgresql, user: hashed, password: hunter2, database: postgres",
            "type: postgresql, user: scram, password: hunter2, database: postgres, query: \"SELECT 1; SELECT 2\"",
            &format!("type: postgresql, user: scram, password: hunter2, database: postgres, {tls}"),
            &format!("type: postgresql, user: clear, password: hunter2, database: postgres, {tls}"),
        ],
        &[
            (
                "type: postgresql, user: scram, password: hunter3, database: postgres",
                "PostgreSQL: login: 28P01: ",
            ),
            ("type: postgresql, user: scram, database: postgres", "the server asks for a password"),
            (
                "type: postgresql, user: clear, password: hunter2, database: postgres",
                "sends only over TLS",
            ),
            ("type: postgresql, user: scram, password: hunter2", "PostgreSQL: login: 3D000: "),
            (
                "type: postgresql, user: trusted, database: postgres, query: SELEC",
                "PostgreSQL: query: 42601: ",
            ),
            (
                "type: postgresql, user: trusted, database: postgres, query: \"SELECT NULL\", value: f",
                "no value where `f` is expected",
            ),
            ("type: mysql, user: a", "no answer in 1s (waiting for the expected answer)"),
        ],
    );
}

const MYSQL_USERS: &str = "CREATE USER probe@'127.0.0.1' IDENTIFIED BY 'hunter2';\n\
                           CREATE USER nobody@'127.0.0.1';\n\
                           CREATE USER encrypted@'127.0.0.1' IDENTIFIED BY 'hunter2' REQUIRE SSL;\n\
                           CREATE DATABASE shop;\n\
                           GRANT SELECT ON shop.* TO probe@'127.0.0.1';\n";

#[test]
fn monitors_log_in_to_mysql() {
    let Some(server) = program("mariadbd", "") else { return };
    let Some(install) = program("mariadb-install-db", "") else { return };
    let folder = folder("mysql");
    let data = folder.path().join("data");
    let (data, socket) = (data.display(), folder.path().join("socket"));
    let common = ["--no-defaults".to_owned(), format!("--datadir={data}")];
    tools::run(
        as_nobody(&install)
            .args(&common)
            .args(["--auth-root-authentication-method=normal", "--skip-test-db"]),
    );
    let [certificate, key] = certificate(&folder);
    let users = private(&folder, "users.sql", MYSQL_USERS);
    let lease = Lease::new();
    let port = lease.address().port();
    let mut arguments = common.to_vec();
    arguments.extend([
        format!("--port={port}"),
        "--bind-address=127.0.0.1".into(),
        "--skip-name-resolve".into(),
        format!("--socket={}", socket.display()),
        format!("--pid-file={}", folder.path().join("pid").display()),
        format!("--init-file={}", users.display()),
        format!("--ssl-cert={}", certificate.display()),
        format!("--ssl-key={}", key.display()),
    ]);
    let _process = start(&folder, &server, &arguments, SocketAddr::from(([127, 0, 0, 1], port)));
    let probe = "type: mysql, user: probe, password: hunter2";
    let tls = "tls: true, verify: false, host: shop.example";
    check(
        port,
        &[
            "type: mysql",
            probe,
            "type: mysql, user: nobody",
            &format!("{probe}, database: shop, query: \"SELECT @@read_only\", value: \"0\""),
            &format!("{probe}, query: \"DO 1\""),
            &format!("type: mysql, user: encrypted, password: hunter2, query: \"SELECT 1\", {tls}"),
        ],
        &[
            ("type: mysql, user: probe, password: hunter3", "MySQL: login: error 1045: "),
            ("type: mysql, user: encrypted, password: hunter2", "MySQL: login: error 1045: "),
            (&format!("{probe}, database: other"), "MySQL: login: error 1044: "),
            (&format!("{probe}, query: SELEC"), "MySQL: query: error 1064: "),
            (&format!("{probe}, query: \"SELECT 1\", value: \"2\""), "`1` where `2` is expected"),
            ("type: postgresql, user: a", "malformed response: "),
        ],
    );
}
