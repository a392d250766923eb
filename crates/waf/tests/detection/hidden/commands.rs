//! Texts with the names of programs, and commands that look like them.

use super::{check, field, header, named, serde_json};
use crate::send::Sent;

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
