//! `monitors`: active health checks.

use crate::address::HostName;
use crate::decode::Spanned;
use crate::raw::{Port, TIMEOUT_MS_MAX, Timeout};
use crate::scalar::{Duration, Percent, SECOND, Text, Whole};
use crate::shapes::{
    AnyText, BodyExpectation, FieldTexts, FilePath, Payload, ProbePath, SecretText,
    StatusExpectation,
};
use crate::variants::{Kind, use_one_of};

/// Shortest interval of a monitor.
const INTERVAL_MS_MIN: u64 = 100;
/// Most probes in a row for `rise` and `fall`.
const PROBES_MAX: u64 = 1_000;

/// How often a monitor probes.
pub(crate) type Interval = Duration<INTERVAL_MS_MIN, TIMEOUT_MS_MAX>;
/// Results in a row.
pub(crate) type Probes = Whole<u32, 1, PROBES_MAX>;

variants! {
    /// An active health check.
    Monitor at "pools.NAME.monitors[]" by MonitorType {
        /// The type of probe.
        required kind as "type" for all: MonitorType;
        /// The path of the request, optionally with a query.
        default path for [Http, Https]: ProbePath = ProbePath("/".into());
        /// The method of the request. A response to HEAD has no body.
        default method for [Http, Https]: ProbeMethod = ProbeMethod::Get;
        /// Headers of the request. They replace the default headers (`User-Agent`, `Accept`). Headers for framing and the connection (such as `Content-Length` and `Connection`) cannot be set; use `host` for `Host`.
        optional headers for [Http, Https]: FieldTexts;
        /// The body of the request (with POST, PUT, PATCH and DELETE): text, or `{ hex: … }`. Default: none.
        optional body for [Http, Https]: Payload;
        /// The user of the probe's login (http and https: by Basic authentication). For ldap: the bind DN, for example `cn=probe,dc=example`. Without a user, redis uses its default user, ldap binds anonymously, and mysql and postgresql do not log in.
        optional user for [Http, Https, Redis, Ldap, Mysql, Postgresql, Radius]: Text;
        /// The password of the user. It appears in no log or message, but everyone who can read the configuration can read it.
        optional password for [Http, Https, Redis, Ldap, Mysql, Postgresql, Radius]: SecretText;
        /// A file with the password, read with the configuration; a final line end is ignored.
        optional password_file for [Http, Https, Redis, Ldap, Mysql, Postgresql, Radius]: FilePath;
        /// `true`: the connection uses TLS, from its start, or for mysql and postgresql as soon as their protocols allow it.
        default tls for [Tcp, Redis, Smtp, Ldap, Mysql, Postgresql]: bool = false;
        /// `true`: STARTTLS upgrades the connection to TLS. Do not set `tls` as well.
        default starttls for [Smtp, Ldap]: bool = false;
        /// The `Host` header of the request (http, https, grpc and grpcs). Over TLS, it is also the server name (SNI), and the certificate must be valid for it. Default: the member's name or address.
        optional host for [Http, Https, Grpc, Grpcs, Tcp, Redis, Smtp, Ldap, Mysql, Postgresql]: HostName;
        /// A port other than the member's. Default: the member's port.
        optional port for [Tcp, Http, Https, Grpc, Grpcs, Script, Udp, Dns, Redis, Smtp, Ldap, Mysql, Postgresql, Radius]: Port;
        /// Over TLS: `true`: the member's certificate must be valid. `false`: any certificate passes.
        default verify for [Https, Grpcs, Tcp, Redis, Smtp, Ldap, Mysql, Postgresql]: bool = true;
        /// The expected response.
        optional expect for [Http, Https]: Expect;
        /// The data to send after connecting (tcp), or in the datagram (udp): text, in double quotes with `\r` and `\n`, or `{ hex: … }`.
        optional send for [Tcp, Udp]: Payload;
        /// The content that the answer must have (tcp: in its first 64 KiB; udp: in the first datagram): text, `{ regex: … }` or `{ hex: … }`. Default: no answer is needed (tcp), or any answer passes (udp).
        optional receive for [Tcp, Udp]: BodyExpectation;
        /// Treatment of a missing answer.
        default answer for [Udp]: UdpAnswer = UdpAnswer::Required;
        /// dns: the name to query. smtp: the name in EHLO (default: `localhost`).
        optional name for [Dns, Smtp]: Text;
        /// The type of the records to query.
        default record for [Dns]: DnsRecord = DnsRecord::A;
        /// The expected response code.
        default rcode for [Dns]: DnsRcode = DnsRcode::Noerror;
        /// dns: the value that one record of the answer must have, as in a zone file: `192.0.2.1`, `10 mail.example.`; TXT without quotes. Default: an answer without records passes, too. mysql and postgresql: the expected first value of the answer to `query`, as text. Default: any answer passes.
        optional value for [Dns, Mysql, Postgresql]: Text;
        /// The role that the server must have. Default: any.
        optional role for [Redis]: RedisRole;
        /// The DN of the entry that must exist. Default: the server's root DSE, `""`.
        optional base for [Ldap]: AnyText;
        /// The attribute that the entry must have.
        default attribute for [Ldap]: Text = Text("objectClass".into());
        /// The database of the login. Default: none (mysql), or the database with the user's name (postgresql).
        optional database for [Mysql, Postgresql]: Text;
        /// One SQL statement to execute after the login. Default: the login is enough.
        optional query for [Mysql, Postgresql]: Text;
        /// The secret shared with the server.
        optional secret for [Radius]: SecretText;
        /// A file with the secret, read with the configuration.
        optional secret_file for [Radius]: FilePath;
        /// The answer that passes.
        default reply for [Radius]: RadiusReply = RadiusReply::Accept;
        /// The name of the service to check. Default: the server as a whole.
        optional service for [Grpc, Grpcs]: Text;
        /// The program and its arguments. Its environment has `WEIR_POOL`, `WEIR_MEMBER` (as written), `WEIR_ADDRESS` and `WEIR_PORT`. After `timeout`, weir kills the program and its process group.
        optional command for [Script]: Vec<Spanned<Text>>;
        /// The answer that drains the member, as `state: drain` does. Corresponds to `recv disable` of BIG-IP.
        optional drain_on for [Http, Https, Tcp, Udp]: DrainOn;
        /// Inverts the result: the member is up while the probe fails.
        default reverse for all: bool = false;
        /// The time between the starts of two probes.
        default interval for all: Interval = Duration(5 * SECOND);
        /// A probe without an answer within this time fails. Must not exceed `interval`. Default: `2s`, or the interval if that is shorter.
        optional timeout for all: Timeout;
        /// Number of consecutive passed probes that bring a down member up. For a new member, and after a start, one passed probe is enough.
        default rise for all: Probes = Whole(2);
        /// Number of consecutive failed probes that take a member down.
        default fall for all: Probes = Whole(3);
        /// A down member comes up only after its probes have passed for this time, in addition to `rise`. A new member is up after its first passed probe. Default: no delay.
        optional up_delay for all: Timeout;
        /// Each interval is shortened or lengthened by a random share up to this value, so that probes do not all run at the same time.
        default jitter for all: Percent = Percent(10);
    }
    plain [Icmp]
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

impl Kind for MonitorType {
    const OF: &'static str = "a monitor";

    fn remedy(self, key: &str, takers: &[Self]) -> String {
        match key {
            "status" => "use `body`: the answer must contain it".to_owned(),
            _ => use_one_of(takers),
        }
    }
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

variants! {
    /// The answer that drains a member. All given conditions must hold. weir checks them before `expect` and `receive`.
    DrainOn at "pools.NAME.monitors[].drain_on" by MonitorType {
        /// Status codes: one, a range in quotes, or a list of both.
        optional status for [Http, Https]: StatusExpectation;
        /// The content that the first 64 KiB of the body (tcp and udp: of the answer) must have: text, `{ regex: … }` or `{ hex: … }`. Default: not checked.
        optional body for all: BodyExpectation;
    }
    plain [Tcp, Grpc, Grpcs, Script, Udp, Dns, Icmp, Redis, Smtp, Ldap, Mysql, Postgresql, Radius]
    later []
}
