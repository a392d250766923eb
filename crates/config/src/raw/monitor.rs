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
/// Most probes in a row for `rise` and `fall`.
const PROBES_MAX: u64 = 1_000;

/// How often a monitor probes.
pub(crate) type Interval = Duration<INTERVAL_MS_MIN, TIMEOUT_MS_MAX>;
/// Results in a row.
pub(crate) type Probes = Whole<u32, 1, PROBES_MAX>;

section! {
    /// An active health check.
    Monitor at "pools.NAME.monitors[]" {
        /// The type of probe.
        required kind as "type": MonitorType;
        /// The path of the request (http and https), optionally with a query.
        default path: ProbePath = ProbePath("/".into());
        /// The method of the request (http and https). A response to HEAD has no body.
        default method: ProbeMethod = ProbeMethod::Get;
        /// Headers of the request (http and https). They replace the default headers (`User-Agent`, `Accept`). Headers for framing and the connection (such as `Content-Length` and `Connection`) cannot be set; use `host` for `Host`.
        optional headers: FieldTexts;
        /// The body of the request (http and https; with POST, PUT, PATCH and DELETE): text, or `{ hex: … }`. Default: none.
        optional body: Payload;
        /// The user of the probe's login (http and https, with Basic authentication; redis, ldap, mysql, postgresql and radius). For ldap: the bind DN, for example `cn=probe,dc=example`. Without a user, redis uses its default user, ldap binds anonymously, and mysql and postgresql do not log in.
        optional user: Text;
        /// The password of the user. It appears in no log or message, but everyone who can read the configuration can read it.
        optional password: SecretText;
        /// A file with the password, read with the configuration; a final line end is ignored.
        optional password_file: FilePath;
        /// `true`: the connection uses TLS (tcp, redis, smtp, ldap, mysql and postgresql), from its start, or for mysql and postgresql as soon as their protocols allow it.
        default tls: bool = false;
        /// `true`: STARTTLS upgrades the connection to TLS (smtp and ldap). Do not set `tls` as well.
        default starttls: bool = false;
        /// The `Host` header of the request (http, https, grpc and grpcs). Over TLS, it is also the server name (SNI), and the certificate must be valid for it. Default: the member's name or address.
        optional host: HostName;
        /// A port other than the member's. Not for icmp. Default: the member's port.
        optional port: Port;
        /// Over TLS: `true`: the member's certificate must be valid. `false`: any certificate passes.
        default verify: bool = true;
        /// The expected response (http and https).
        optional expect: Expect;
        /// The data to send after connecting (tcp), or in the datagram (udp): text, in double quotes with `\r` and `\n`, or `{ hex: … }`.
        optional send: Payload;
        /// The content that the answer must have (tcp: in its first 64 KiB; udp: in the first datagram): text, `{ regex: … }` or `{ hex: … }`. Default: no answer is needed (tcp), or any answer passes (udp).
        optional receive: BodyExpectation;
        /// Treatment of a missing answer (udp).
        default answer: UdpAnswer = UdpAnswer::Required;
        /// dns: the name to query. smtp: the name in EHLO (default: `localhost`).
        optional name: Text;
        /// The type of the records to query (dns).
        default record: DnsRecord = DnsRecord::A;
        /// The expected response code (dns).
        default rcode: DnsRcode = DnsRcode::Noerror;
        /// dns: the value that one record of the answer must have, as in a zone file: `192.0.2.1`, `10 mail.example.`; TXT without quotes. Default: an answer without records passes, too. mysql and postgresql: the expected first value of the answer to `query`, as text. Default: any answer passes.
        optional value: Text;
        /// The role that the server must have (redis). Default: any.
        optional role: RedisRole;
        /// The DN of the entry that must exist (ldap). Default: the server's root DSE, `""`.
        optional base: AnyText;
        /// The attribute that the entry must have (ldap).
        default attribute: Text = Text("objectClass".into());
        /// The database of the login (mysql and postgresql). Default: none (mysql), or the database with the user's name (postgresql).
        optional database: Text;
        /// One SQL statement to execute after the login (mysql and postgresql). Default: the login is enough.
        optional query: Text;
        /// The secret shared with the server (radius).
        optional secret: SecretText;
        /// A file with the secret, read with the configuration.
        optional secret_file: FilePath;
        /// The answer that passes (radius).
        default reply: RadiusReply = RadiusReply::Accept;
        /// The name of the service to check (grpc and grpcs). Default: the server as a whole.
        optional service: Text;
        /// The program and its arguments (script). Its environment has `WEIR_POOL`, `WEIR_MEMBER` (as written), `WEIR_ADDRESS` and `WEIR_PORT`. After `timeout`, weir kills the program and its process group.
        optional command: Vec<Spanned<Text>>;
        /// The answer that drains the member, as `state: drain` does. For http, https, tcp and udp. Corresponds to `recv disable` of BIG-IP.
        optional drain_on: DrainOn;
        /// Inverts the result: the member is up while the probe fails.
        default reverse: bool = false;
        /// The time between the starts of two probes.
        default interval: Interval = Duration(5 * SECOND);
        /// A probe without an answer within this time fails. Must not exceed `interval`. Default: `2s`, or the interval if that is shorter.
        optional timeout: Timeout;
        /// Number of consecutive passed probes that bring a down member up. For a new member, and after a start, one passed probe is enough.
        default rise: Probes = Whole(2);
        /// Number of consecutive failed probes that take a member down.
        default fall: Probes = Whole(3);
        /// A down member comes up only after its probes have passed for this time, in addition to `rise`. A new member is up after its first passed probe. Default: no delay.
        optional up_delay: Timeout;
        /// Each interval is shortened or lengthened by a random share up to this value, so that probes do not all run at the same time.
        default jitter: Percent = Percent(10);
    }
    later []
}

choice! {
    /// The method of a monitor's request.
    ProbeMethod {
        /// Gets a page with its body.
        Get = "GET",
        /// Gets only the head.
        Head = "HEAD",
        /// Asks for the server's capabilities.
        Options = "OPTIONS",
        /// Sends `body` for processing.
        Post = "POST",
        /// Sends `body` for storage.
        Put = "PUT",
        /// Sends a change in `body`.
        Patch = "PATCH",
        /// Removes a resource.
        Delete = "DELETE",
    }
    later [] maps []
}

choice! {
    /// The type of probe.
    MonitorType {
        /// Passes if an HTTP request gets the expected response.
        Http = "http",
        /// As `http`, over TLS.
        Https = "https",
        /// Passes if the connection is accepted and, with `receive`, if the answer has this content.
        Tcp = "tcp",
        /// Passes if the gRPC health service answers SERVING.
        Grpc = "grpc",
        /// As `grpc`, over TLS.
        Grpcs = "grpcs",
        /// Passes if your own program exits with 0.
        Script = "script",
        /// Passes if a datagram is answered as set by `receive` and `answer`.
        Udp = "udp",
        /// Passes if a DNS query over UDP is answered with `rcode` and, with `value`, if a record has this value.
        Dns = "dns",
        /// Passes if the host answers an ICMP echo request.
        Icmp = "icmp",
        /// Passes if Redis answers PING, and has the role `role`.
        Redis = "redis",
        /// Passes if a mail server answers EHLO with 250.
        Smtp = "smtp",
        /// Passes if an LDAP server accepts a bind, and the entry `base` exists.
        Ldap = "ldap",
        /// Passes if MySQL or MariaDB sends its greeting; with `user`, if the login succeeds and `query` is answered.
        Mysql = "mysql",
        /// Passes if PostgreSQL asks for authentication; with `user`, if the login succeeds and `query` is answered.
        Postgresql = "postgresql",
        /// Passes if a RADIUS server answers an Access-Request as set by `reply`.
        Radius = "radius",
    }
    later [] maps []
}

choice! {
    /// Roles of Redis servers.
    RedisRole {
        /// The server accepts writes.
        Master = "master",
        /// The server is a replica.
        Replica = "replica",
    }
    later [] maps []
}

choice! {
    /// Answers of a RADIUS server that pass.
    RadiusReply {
        /// Access-Accept.
        Accept = "accept",
        /// Access-Reject: the server works, and the user does not exist.
        Reject = "reject",
        /// Either of them, or Access-Challenge.
        Any = "any",
    }
    later [] maps []
}

choice! {
    /// Treatment of a missing answer. An ICMP port unreachable is always a failure.
    UdpAnswer {
        /// No answer by `timeout` is a failure.
        Required = "required",
        /// No answer by `timeout` passes. Only a wrong answer or an ICMP port unreachable is a failure.
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
        /// Alias.
        Cname = "CNAME",
        /// Mail servers.
        Mx = "MX",
        /// Name servers.
        Ns = "NS",
        /// Name of an address.
        Ptr = "PTR",
        /// Start of authority.
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
        /// The server refuses the query.
        Refused = "REFUSED",
        /// The server failed.
        Servfail = "SERVFAIL",
        /// The server does not implement the query.
        Notimp = "NOTIMP",
    }
    later [] maps []
}

section! {
    /// The response that a probe must get.
    Expect at "pools.NAME.monitors[].expect" {
        /// Status codes: one, a range in quotes, or a list of both.
        default status: StatusExpectation = StatusExpectation::default();
        /// The content that the first 64 KiB of the body must have: text, `{ regex: … }` or `{ hex: … }`. Default: any body.
        optional body: BodyExpectation;
    }
    later []
}

section! {
    /// The answer that drains a member. All given conditions must hold. weir checks them before `expect` and `receive`.
    DrainOn at "pools.NAME.monitors[].drain_on" {
        /// Status codes: one, a range in quotes, or a list of both (http and https).
        optional status: StatusExpectation;
        /// The content that the first 64 KiB of the body (tcp and udp: of the answer) must have: text, `{ regex: … }` or `{ hex: … }`. Default: not checked.
        optional body: BodyExpectation;
    }
    later []
}
