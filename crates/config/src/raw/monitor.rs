//! `monitors`: active health checks.

use crate::address::HostName;
use crate::decode::Spanned;
use crate::raw::{Port, TIMEOUT_MS_MAX, Timeout};
use crate::scalar::{Duration, Percent, SECOND, Text, Whole};
use crate::shapes::{
    AnyText, BodyExpectation, FieldTexts, FilePath, Payload, ProbePath, SecretText,
    StatusExpectation,
};

/// Shortest interval of a monitor.
const INTERVAL_MS_MIN: u64 = 100;
/// Most probes in a row that `rise` and `fall` can ask for.
const PROBES_MAX: u64 = 1_000;

/// How often a monitor probes.
pub(crate) type Interval = Duration<INTERVAL_MS_MIN, TIMEOUT_MS_MAX>;
/// Results in a row.
pub(crate) type Probes = Whole<u32, 1, PROBES_MAX>;

section! {
    /// An active health check.
    Monitor at "pools.NAME.monitors[]" {
        /// `tcp`: the connection is accepted, and answers what `receive` says. `http` and `https`: a request gets the expected answer. `grpc` and `grpcs`: the health service of gRPC says SERVING. `script`: a command ends with 0. `udp`: a datagram is answered as `receive` and `answer` say. `dns`: a question is answered with `rcode`. `icmp`: the host answers an echo. `redis`: PING is answered, by a server of `role`. `smtp`: EHLO is answered with 250. `ldap`: a bind is accepted, and the entry `base` is there. `mysql`: the server greets, and with `user`, lets it log in and answers `query`. `postgresql`: the server asks who is there, and with `user` the same. `radius`: an Access-Request is answered as `reply` says.
        required kind as "type": MonitorType;
        /// What is asked for (http and https), with a query if need be.
        default path: ProbePath = ProbePath("/".into());
        /// How it is asked for (http and https). A response to HEAD has no body.
        default method: ProbeMethod = ProbeMethod::Get;
        /// Fields of the request (http and https), in place of those that a probe has anyway (`User-Agent`, `Accept`). What a request's framing depends on cannot be set; `Host` is set by `host`.
        optional headers: FieldTexts;
        /// What the request carries (http and https; with POST, PUT, PATCH and DELETE): text, or `{ hex: … }`.
        optional body: Payload;
        /// The user as which the probe logs in (http and https: by Basic authentication; redis: without one, as the default user; ldap: the name to bind with, such as `cn=probe,dc=example`; mysql, postgresql, radius). Without it, ldap binds anonymously, and mysql and postgresql do not log in.
        optional user: Text;
        /// Its password. It appears in no log or message; whoever may read the configuration can read it.
        optional password: SecretText;
        /// A file with the password instead, read with the configuration; a line end at its end does not count.
        optional password_file: FilePath;
        /// Whether the connection is encrypted (tcp, redis, smtp, ldap, mysql and postgresql): from its start, and of mysql and postgresql as soon as their protocols let it.
        default tls: bool = false;
        /// Whether the connection is encrypted later, by STARTTLS (smtp and ldap); then `tls` is not set.
        default starttls: bool = false;
        /// The `Host` field of the request (http, https, grpc and grpcs) and, over TLS, the name that is asked for and that the certificate must have. Default: the member's name or address.
        optional host: HostName;
        /// Another port than the member's. Not for icmp.
        optional port: Port;
        /// Whether the member's certificate must be valid, over TLS.
        default verify: bool = true;
        /// What the answer must be (http and https).
        optional expect: Expect;
        /// What is sent when the connection stands (tcp), or as a datagram (udp): text, in double quotes with `\r` and `\n`, or `{ hex: … }`.
        optional send: Payload;
        /// What the first 64 KiB that come (udp: the first datagram) must have in them: text, `{ regex: … }` or `{ hex: … }` (tcp and udp). Default: with tcp nothing needs to come, with udp any answer passes.
        optional receive: BodyExpectation;
        /// Whether silence is a failure (udp).
        default answer: UdpAnswer = UdpAnswer::Required;
        /// The name that is asked for (dns); what the monitor calls itself in EHLO (smtp; default `localhost`).
        optional name: Text;
        /// The type of the records that are asked for (dns).
        default record: DnsRecord = DnsRecord::A;
        /// The code that the answer must have (dns).
        default rcode: DnsRcode = DnsRcode::Noerror;
        /// What one of the records in the answer must be (dns), as in a zone file: `192.0.2.1`, `10 mail.example.`; TXT without quotes. Default: an answer without records passes too. Of mysql and postgresql: the first value in the answer to `query`, as a text. Default: any answer passes.
        optional value: Text;
        /// The role that the server must have (redis). Default: any.
        optional role: RedisRole;
        /// The name of the entry that must be there (ldap). Default: the server's own, `""`.
        optional base: AnyText;
        /// The attribute that this entry must have (ldap).
        default attribute: Text = Text("objectClass".into());
        /// The database that the user logs in to (mysql and postgresql). Default: none (mysql), the one with the user's name (postgresql).
        optional database: Text;
        /// What is asked once the user has logged in (mysql and postgresql): one statement. Default: the login is enough.
        optional query: Text;
        /// The secret that is shared with the server (radius).
        optional secret: SecretText;
        /// A file with it instead, read with the configuration.
        optional secret_file: FilePath;
        /// The answer that passes (radius).
        default reply: RadiusReply = RadiusReply::Accept;
        /// The service whose health is asked for (grpc and grpcs). Default: the server as a whole.
        optional service: Text;
        /// The program and its arguments (script). It gets `WEIR_POOL`, `WEIR_MEMBER` (as written), `WEIR_ADDRESS` and `WEIR_PORT` in its environment; by `timeout` it is killed with all that it started.
        optional command: Vec<Spanned<Text>>;
        /// An answer that asks for nothing new but requests of persistent clients (`recv disable` of BIG-IP; http, https, tcp and udp).
        optional drain_on: DrainOn;
        /// Turns the result around: the member is up while the probe fails.
        default reverse: bool = false;
        /// From the start of one probe to the start of the next.
        default interval: Interval = Duration(5 * SECOND);
        /// A probe without an answer by then has failed. At most the interval. Default: `2s`, or the interval when that is shorter.
        optional timeout: Timeout;
        /// Passes in a row that bring a member up again. The first probe after the start counts alone.
        default rise: Probes = Whole(2);
        /// Failures in a row that take a member down.
        default fall: Probes = Whole(3);
        /// A member that was down must pass for this long before it is up again, and `rise` times at least. A new member is up with its first pass. Default: no delay.
        optional up_delay: Timeout;
        /// Each interval is shortened or lengthened by up to this much, so that probes do not come all at once.
        default jitter: Percent = Percent(10);
    }
    later []
}

choice! {
    /// The method of a monitor's request.
    ProbeMethod {
        /// The page, with its body.
        Get = "GET",
        /// The head of the page alone.
        Head = "HEAD",
        /// What the server can do.
        Options = "OPTIONS",
        /// `body` is to be processed.
        Post = "POST",
        /// `body` is to be stored.
        Put = "PUT",
        /// Something is to be changed as `body` says.
        Patch = "PATCH",
        /// Something is to be removed.
        Delete = "DELETE",
    }
    later [] maps []
}

choice! {
    /// What a monitor does.
    MonitorType {
        /// A request in clear.
        Http = "http",
        /// A request over TLS.
        Https = "https",
        /// A connection, and what is said on it.
        Tcp = "tcp",
        /// The health service of gRPC, in clear.
        Grpc = "grpc",
        /// The same over TLS.
        Grpcs = "grpcs",
        /// A program of yours.
        Script = "script",
        /// A datagram, and its answer.
        Udp = "udp",
        /// A question over UDP.
        Dns = "dns",
        /// An echo of the host.
        Icmp = "icmp",
        /// Redis and what speaks its protocol.
        Redis = "redis",
        /// A mail server.
        Smtp = "smtp",
        /// A directory.
        Ldap = "ldap",
        /// MySQL or MariaDB.
        Mysql = "mysql",
        /// PostgreSQL.
        Postgresql = "postgresql",
        /// A RADIUS server.
        Radius = "radius",
    }
    later [] maps []
}

choice! {
    /// Roles of Redis servers.
    RedisRole {
        /// It takes writes.
        Master = "master",
        /// It follows a master.
        Replica = "replica",
    }
    later [] maps []
}

choice! {
    /// Answers of a RADIUS server that pass.
    RadiusReply {
        /// Access-Accept.
        Accept = "accept",
        /// Access-Reject: the server decides, and the user does not exist.
        Reject = "reject",
        /// Either of them, or Access-Challenge.
        Any = "any",
    }
    later [] maps []
}

choice! {
    /// What silence means. A member whose host says that nobody listens at the port (ICMP) has failed either way.
    UdpAnswer {
        /// No answer by `timeout` is a failure.
        Required = "required",
        /// No answer by `timeout` is a pass: the member is down only where its host says so, or its answer is wrong.
        Optional = "optional",
    }
    later [] maps []
}

choice! {
    /// Types of DNS records.
    DnsRecord {
        /// IPv4 addresses.
        A = "A",
        /// IPv6 addresses.
        Aaaa = "AAAA",
        /// Another name.
        Cname = "CNAME",
        /// Mail servers.
        Mx = "MX",
        /// Name servers.
        Ns = "NS",
        /// The name of an address.
        Ptr = "PTR",
        /// The start of a zone.
        Soa = "SOA",
        /// Servers of a service.
        Srv = "SRV",
        /// Text.
        Txt = "TXT",
    }
    later [] maps []
}

choice! {
    /// Response codes of DNS.
    DnsRcode {
        /// The name exists.
        Noerror = "NOERROR",
        /// The name does not exist.
        Nxdomain = "NXDOMAIN",
        /// The server does not serve us.
        Refused = "REFUSED",
        /// The server failed.
        Servfail = "SERVFAIL",
        /// The server does not know the question.
        Notimp = "NOTIMP",
    }
    later [] maps []
}

section! {
    /// The answer that a probe must get.
    Expect at "pools.NAME.monitors[].expect" {
        /// Status codes: one, a range in quotes, or a list of both.
        default status: StatusExpectation = StatusExpectation::default();
        /// What the first 64 KiB of the body must have in them: text, or `{ regex: … }`. Default: any body.
        optional body: BodyExpectation;
    }
    later []
}

section! {
    /// The answer by which a member asks to be drained; all that is given must hold. It is looked for before the expected one.
    DrainOn at "pools.NAME.monitors[].drain_on" {
        /// Status codes: one, a range in quotes, or a list of both (http and https).
        optional status: StatusExpectation;
        /// What the first 64 KiB of the body (tcp and udp: of what comes) must have in them: text, or `{ regex: … }`.
        optional body: BodyExpectation;
    }
    later []
}
