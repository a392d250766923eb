use super::*;

const ONE: &str = "-----BEGIN X509 CRL-----\nAQID\n-----END X509 CRL-----\n";
const TWO: &str = "-----BEGIN CERTIFICATE-----\nBAUG\nBwg=\n-----END CERTIFICATE-----\n";

/// Line and contents of each block.
fn found(text: &str) -> Vec<(usize, Vec<u8>)> {
    let blocks = blocks(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
    blocks.into_iter().map(|block| (block.line, block.content)).collect()
}

#[test]
fn all_blocks_are_found() {
    let both = |first, second| vec![(first, vec![1, 2, 3]), (second, vec![4, 5, 6, 7, 8])];
    let check = |text: String, expected| assert_eq!(found(&text), expected, "{text}");
    check(format!("{ONE}{TWO}"), both(1, 4));
    check(format!("\n\n{ONE}\n{TWO}\n"), both(3, 7));
    // Other line ends, and no end of the last line.
    check(format!("{ONE}{TWO}").replace('\n', "\r\n"), both(1, 4));
    check(format!("{ONE}{TWO}").replace('\n', "\r"), both(1, 4));
    check(format!("{ONE}{}", TWO.trim_end()), both(1, 4));
    // White space before, behind and in lines, as in a text from YAML.
    check(format!("{ONE}{TWO}").replace('\n', " \t\n    "), both(1, 4));
    check(format!("{ONE}{TWO}").replace("BAUG", "BA UG"), both(1, 4));
    // Comments: of hands, of `openssl x509 -text`, of `openssl pkcs12`, of lists of authorities.
    let comments = "# -----BEGIN CERTIFICATE-----\n#MIIB\nGTS Root R1\n===========\n-----------\n\
                    Certificate:\n    Data:\n        Version: 3 (0x2)\n            00:a1:b2\n\
                    Bag Attributes\n    localKeyID: 54 69 6D\nsubject=CN = a.example\n\
                    \u{fc}ber die Z\u{e4}hlung\n";
    check(format!("{comments}{ONE}{comments}{TWO}{comments}"), both(14, 30));
    assert_eq!(found(""), vec![]);
    assert_eq!(found(comments), vec![]);
}

#[test]
fn labels() {
    for (label, expected) in [
        ("CERTIFICATE", Label::Certificate),
        ("X509 CERTIFICATE", Label::Certificate),
        ("X509 CRL", Label::RevocationList),
        ("PRIVATE KEY", Label::Key(SectionKind::PrivateKey)),
        ("EC PRIVATE KEY", Label::Key(SectionKind::EcPrivateKey)),
        ("RSA PRIVATE KEY", Label::Key(SectionKind::RsaPrivateKey)),
        ("EC PARAMETERS", Label::Parameters),
    ] {
        let text = format!("-----BEGIN {label}-----\nAQID\n-----END {label}-----\n");
        let blocks = blocks(text.as_bytes()).expect(label);
        assert_eq!(blocks.iter().map(|block| block.label).collect::<Vec<_>>(), [expected]);
        assert_eq!(blocks[0].content, [1, 2, 3], "{label}");
    }
}

#[test]
fn what_would_be_missing_is_an_error() {
    use Mistake::*;
    let two = |from: &str, to: &str| format!("{ONE}{}", TWO.replace(from, to));
    let begin = "-----BEGIN CERTIFICATE-----";
    for (text, line, what) in [
        (format!("\u{feff}{ONE}"), 1, ByteOrderMark),
        (format!("\u{feff}\n{ONE}"), 1, ByteOrderMark),
        (format!("\u{feff}# a comment\n{ONE}"), 1, ByteOrderMark),
        (format!("{ONE}\u{feff}{TWO}"), 4, ByteOrderMark),
        (two("BAUG", "\u{feff}BAUG"), 5, ByteOrderMark),
        (format!("{}{TWO}", ONE.trim_end()), 3, Glued),
        (format!("{} {TWO}", ONE.trim_end()), 3, Marker),
        (two(begin, "-----begin certificate-----"), 4, Marker),
        (two(begin, "-----BEGIN x509 CERTIFICATE-----"), 4, Marker),
        (two(begin, "----BEGIN CERTIFICATE----"), 4, Marker),
        (two(begin, "------BEGIN CERTIFICATE------"), 4, Marker),
        (two(begin, "-----BEGIN CERTIFICATE----"), 4, Marker),
        (two(begin, "----BEGIN CERTIFICATE-----"), 4, Marker),
        (two(begin, "----- BEGIN CERTIFICATE -----"), 4, Marker),
        (two(begin, "-----BEGIN  CERTIFICATE-----"), 4, Marker),
        (two(begin, "\u{2014}\u{2014}BEGIN CERTIFICATE\u{2014}\u{2014}"), 4, Marker),
        (two(begin, "\u{200b}-----BEGIN CERTIFICATE-----"), 4, Marker),
        (two(begin, "> -----BEGIN CERTIFICATE-----"), 4, Marker),
        (two(begin, "-----BEGIN-----"), 4, Marker),
        (two(begin, ""), 7, OtherEnd),
        (two(begin, "").replace("BAUG", &"BAUG".repeat(8)), 5, Outside),
        // Short lines, of which the markers are lost.
        (format!("{ONE}{}{TWO}", "MIIBAUGBwgAUGBwg\n".repeat(3)), 4, Outside),
        (format!("{ONE}GTS\n\nMIIBAUGBwgAU\n\n#\nMIIBAUGBwgAU\nMIIBAUGBwgAU\n"), 4, Outside),
        (
            format!("{ONE}Actalis\n=======\nof 2011\nGlobalSign\n==========\n{TWO}Root\nCA\n"),
            0,
            Empty,
        ),
        (two("-----END CERTIFICATE-----", ""), 4, NoEnd),
        (two("-----END CERTIFICATE-----", "-----END X509 CRL-----"), 7, OtherEnd),
        (two("-----END CERTIFICATE-----\n", TWO), 7, Nested(4)),
        (two("BAUG", "BA*G"), 5, NotBase64),
        (two("BAUG", "BAUG\nKey: value"), 6, NotBase64),
        (two("BAUG", "BAU="), 4, BadBase64),
        (two("BAUG", "BAU"), 4, BadBase64),
        (two("Bwg=", "Bw=="), 0, Empty),
        (two("Bwg=", "B==="), 4, BadBase64),
        (two("BAUG\nBwg=\n", ""), 4, Empty),
        (two("CERTIFICATE", "ENCRYPTED PRIVATE KEY"), 4, Encrypted),
        (two("BAUG", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES\n\nBAUG"), 5, Encrypted),
        (two("CERTIFICATE", "PKCS7"), 4, OtherBlock("PKCS7".into())),
        (two("CERTIFICATE", "TRUSTED CERTIFICATE"), 4, OtherBlock("TRUSTED CERTIFICATE".into())),
        (format!("{ONE}\0\u{1}\n"), 4, Utf16),
        (format!("{ONE}\u{1}\n"), 4, Binary),
    ] {
        let result = blocks(text.as_bytes()).map(|blocks| blocks.len());
        match line {
            0 => assert_eq!(result, Ok(2), "{text}"),
            line => assert_eq!(result, Err(PemError { line, what }), "{text}"),
        }
    }
    for (bytes, what) in
        [(&b"\xff\xfe-\0-\0"[..], Utf16), (b"\xfe\xff\0-", Utf16), (b"\x30\x82\x01\x02", Der)]
    {
        assert_eq!(blocks(bytes).map(|it| it.len()), Err(PemError { line: 1, what }));
    }
}

/// Whatever is done to a byte of the file: the same blocks are found, or there is an error, or the block itself differs.
#[test]
fn no_change_of_a_byte_hides_a_block() {
    let text = format!("# list\n{ONE}{TWO}{ONE}");
    let all = found(&text).len();
    for at in 0..text.len() {
        for byte in [b' ', b'\n', b'-', b'A', b'#', 0, 0xef] {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = byte;
            if let Ok(blocks) = blocks(&bytes) {
                let shown = String::from_utf8_lossy(&bytes);
                assert_eq!(blocks.len(), all, "byte {at}: {byte}: {shown}");
            }
            bytes.insert(at, byte);
            if let Ok(blocks) = blocks(&bytes) {
                let shown = String::from_utf8_lossy(&bytes);
                assert_eq!(blocks.len(), all, "byte {at}, two: {byte}: {shown}");
            }
        }
    }
}

#[test]
fn errors_are_in_words() {
    let error = |text: &str| blocks(text.as_bytes()).map(|_| ()).unwrap_err().to_string();
    assert_eq!(
        error(&format!("{ONE}{TWO}").replace("-----END CERTIFICATE-----\n", "")),
        "line 4: the block that begins here has no end; the file may be cut"
    );
    assert_eq!(
        error(&TWO.replace("CERTIFICATE", "CERTIFICATE REQUEST")),
        "line 1: the block is of the kind CERTIFICATE REQUEST, which has no use here; remove it"
    );
}
