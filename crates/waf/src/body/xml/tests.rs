use super::super::testing::{Event, Outcome, check_cuts, mutated, noise, outcome, shown};
use super::*;
use weir_testing::Random;

impl Outcome for Xml {
    fn outcome(&self) -> String {
        outcome(self.failure(), self.differences(), ())
    }
}

fn read_limited(body: &[u8], limits: Limits) -> (Vec<Event>, Xml) {
    check_cuts(
        body,
        || Xml::new(limits),
        |parser, bytes, to| parser.feed(bytes, to),
        |parser, to| parser.finish(to),
    )
}

fn read(body: &[u8]) -> (Vec<Event>, Xml) {
    read_limited(body, Limits::DEFAULT)
}

/// The expected events: texts, attribute values after `@`, and instructions.
fn events(expected: &[&str]) -> Vec<Event> {
    let event = |text: &&str| match text.strip_prefix('@') {
        Some(value) => Event::Attribute(value.to_owned()),
        None if text.starts_with("<?") => Event::Instruction((*text).to_owned()),
        None => Event::Text((*text).to_owned()),
    };
    expected.iter().map(event).collect()
}

#[test]
fn texts_and_attributes_are_delivered() {
    for (body, expected) in [
        ("", &[][..]),
        ("<a/>", &[]),
        ("<a></a>", &[]),
        (" <a > x </a >\n", &["x"]),
        ("<?xml version=\"1.0\"?><root><a probe=\"/etc/passwd\"></a></root>", &["@/etc/passwd"]),
        (
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<n><b>if+foo==</b>\n<c>2</c></n>",
            &["if+foo==", "2"],
        ),
        ("\u{feff}<?xml version=\"1.0\"?><a>\u{e4}</a>", &["\u{e4}"]),
        ("<a>b<c>d</c>e<f/>g</a>", &["b", "d", "e", "g"]),
        ("<a>sel<!-- x -->ect<![CDATA[ <1> ]]>&amp;2<?p q?>3</a>", &["<?p q?>", "select <1> &23"]),
        ("<a>&lt;&gt;&amp;&apos;&quot;&#65;&#x41;&#x1F600;</a>", &["<>&'\"AA\u{1f600}"]),
        ("<a x='1' y = \"2'\"\n z=''/>", &["@1", "@2'", "@"]),
        ("<a x='&#10;P&#13;&lt;&quot;'/>", &["@\nP\r<\""]),
        ("<a x='1\n2\r\n3\t4\r5'/>", &["@1 2 3 4 5"]),
        ("<a>1\r\n2\r3\n\r4</a>", &["1\n2\n3\n\n4"]),
        ("<a x='1'><b x='2'/><b x='3'/></a>", &["@1", "@2", "@3"]),
        ("<a><![CDATA[]]]]></a>", &["]]"]),
        ("<a><![CDATA[a]b]]c]]]]></a>", &["a]b]]c]]"]),
        ("<a><![CDATA[1\r\n2\r]]></a>", &["1\n2"]),
        ("<a>]] ]x]></a>", &["]] ]x]>"]),
        ("<ns:a-1._ xmlns:ns=\"u\">t</ns:a-1._>", &["@u", "t"]),
        ("<!--a-b--><a><!----><!-- - --></a><!-- c --><?x?><?y z?>", &["<?x?>", "<?y z?>"]),
        ("<a/><?php system($_GET['c']) ? x??>", &["<?php system($_GET['c']) ? x??>"]),
        ("<\u{e4}>x</\u{e4}>", &["x"]),
        ("<a>\u{1f600}\u{e4}</a>", &["\u{1f600}\u{e4}"]),
    ] {
        let (delivered, parser) = read(body.as_bytes());
        assert_eq!((delivered, parser.failure()), (events(expected), None), "{body}");
        assert!(parser.differences().is_empty(), "{body}");
    }
}

#[test]
fn bytes_of_old_encodings_are_delivered_as_they_are() {
    let body = b"<?xml version='1.0' encoding='ISO-8859-1'?><a b='\xe4'>\xff</a>";
    let (delivered, parser) = read(body);
    assert_eq!(
        (delivered, parser.failure()),
        (vec![Event::Attribute(shown(b"\xe4")), Event::Text(shown(b"\xff"))], None)
    );
}

#[test]
fn malformed_documents_are_problems() {
    use Problem::*;
    for (body, expected, problem, offset) in [
        (&b"test"[..], &[][..], XmlOutside, 0),
        (b"\n", &[], Unfinished, 1),
        (b"<a>x", &["x"], Unfinished, 4),
        (b"<a b='x", &["@x"], Unfinished, 7),
        (b"<a>1</a>2", &["1"], XmlOutside, 8),
        (b"<a/><b/>", &[], XmlOutside, 6),
        (b"<a/><![CDATA[x]]>", &[], XmlOutside, 12),
        (b"&lt;<a/>", &[], XmlOutside, 0),
        (b"<a>1<b></a></b>", &["1"], XmlEndTag, 10),
        (b"<ab></a>", &[], XmlEndTag, 7),
        (b"<a></ab>", &[], XmlEndTag, 7),
        (b"</a>", &[], XmlEndTag, 3),
        (b"<a></a b>", &[], XmlSyntax, 7),
        (b"< a/>", &[], XmlSyntax, 1),
        (b"<1/>", &[], XmlSyntax, 1),
        (b"<a b/>", &[], XmlSyntax, 4),
        (b"<a b=c/>", &[], XmlSyntax, 5),
        (b"<a b='1'c='2'/>", &["@1"], XmlSyntax, 8),
        (b"<a b='<'/>", &[], XmlSyntax, 6),
        (b"<a/ >", &[], XmlSyntax, 3),
        (b"<a b='1' b='2'/>", &["@1"], XmlAttributeRepeated, 10),
        (b"<a>x]]></a>", &["x]]"], XmlSyntax, 6),
        (b"<a><!-- -- --></a>", &[], XmlSyntax, 10),
        (b"<a><!x></a>", &[], XmlSyntax, 5),
        (b"<a><![cdata[x]]></a>", &[], XmlSyntax, 6),
        (b"<a>x\x01</a>", &["x"], XmlCharacter, 4),
        (b"<a>x\0</a>", &["x"], XmlCharacter, 4),
        (b"<a b='\x1f'/>", &[], XmlCharacter, 6),
        (b"<a>&#0;</a>", &[], XmlCharacter, 6),
        (b"<a>x& y</a>", &["x"], XmlReference, 5),
        (b"<a>&</a>", &[], XmlReference, 4),
        (b"<a>&;</a>", &[], XmlReference, 4),
        (b"<a>&#x;</a>", &[], XmlReference, 6),
        (b"<a>\xff</a>", &["\\xff"], Utf8, 6),
        (b"<a b='\xff'/>", &["@\\xff"], Utf8, 7),
        (b"<\xff/>", &[], Utf8, 2),
        (b" <?xml version='1.0'?><a/>", &[], XmlDeclaration, 6),
        (b"<?XML version='1.0'?><a/>", &[], XmlDeclaration, 5),
        (b"<?xml?><a/>", &[], XmlDeclaration, 6),
        (b"<?xml version='1.0' encoding='utf-7'?><a/>", &[], XmlEncoding, 37),
        (b"\xff\xfe<\0", &[], XmlEncoding, 0),
        (b"\xfe\xff\0<", &[], XmlEncoding, 0),
        (b"\0<", &[], XmlEncoding, 0),
        (b"<\0a\0", &[], XmlEncoding, 1),
        (b"\xef\xbb<a/>", &[], XmlEncoding, 2),
        (b"<?1?>", &[], XmlSyntax, 2),
        (b"<a/><!DOCTYPE a>", &[], XmlDoctype, 12),
        (b"<!DOCTYPE a><!DOCTYPE a><a/>", &[], XmlDoctype, 20),
        (b"<!DOCTYPEa><a/>", &[], XmlDoctype, 9),
        (b"<!DOCTYPE a [<!ENTITY b 'c'> x]><a/>", &[], XmlDoctype, 29),
        (b"<!DOCTYPE a [", &[], Unfinished, 13),
    ] {
        let (delivered, parser) = read(body);
        let failure = Some(Failure { problem, offset });
        assert_eq!(
            (delivered, parser.failure()),
            (events(expected), failure),
            "{}",
            body.escape_ascii()
        );
    }
}

#[test]
fn document_types_are_skipped_and_noted() {
    use Difference::{DocumentType, EntityExternal, EntityInternal, EntityReference};
    for (head, expected) in [
        ("<!DOCTYPE a>", &[DocumentType][..]),
        ("<!DOCTYPE a SYSTEM \"x>y\">", &[DocumentType, EntityExternal]),
        ("<!DOCTYPE a PUBLIC '-//x' 'y' []>", &[DocumentType, EntityExternal]),
        ("<!DOCTYPE SYSTEM []>", &[DocumentType]),
        ("<!DOCTYPE a [<!ENTITY b \"]>c\">]>", &[DocumentType, EntityInternal]),
        ("<!DOCTYPE a [<!ENTITY SYSTEM \"c\">]>", &[DocumentType, EntityInternal]),
        (
            "<!DOCTYPE a [\n<!ENTITY b SYSTEM \"file:///etc/passwd\">\n]>",
            &[DocumentType, EntityExternal],
        ),
        (
            "<!DOCTYPE a [<!ENTITY % p PUBLIC 'x' 'y'>%p;]>",
            &[DocumentType, EntityExternal, EntityReference],
        ),
        ("<!DOCTYPE a [<!ENTITY % p 'x'>]>", &[DocumentType, EntityInternal]),
        (
            "<!DOCTYPE a [<!ENTITY b '1'><!ENTITY c SYSTEM '2'>]>",
            &[DocumentType, EntityInternal, EntityExternal],
        ),
        (
            "<!DOCTYPE a [<!ELEMENT a (#PCDATA)><!ATTLIST a b CDATA \"x\"><!--]>'--><?p ]>'?>]>",
            &[DocumentType],
        ),
        ("<!DOCTYPE a [<!NOTATION n SYSTEM 'x'><!ENTITYX b 'c'>]>", &[DocumentType]),
        (
            "<!DOCTYPE a PUBLIC '-//Apple//DTD PLIST 1.0//EN' 'http://www.apple.com/DTDs/PropertyList-1.0.dtd'>",
            &[DocumentType],
        ),
        (
            "<!DOCTYPE a PUBLIC 'http://www.w3.org/' 'http://evil.example/'>",
            &[DocumentType, EntityExternal],
        ),
        ("<!DOCTYPE a PUBLIC '-//W3C//DTD HTML 4.01//EN'>", &[DocumentType]),
        (
            "<!DOCTYPE a SYSTEM 'http://www.w3.org/x' [<!ENTITY b SYSTEM 'http://www.w3.org/'>]>",
            &[DocumentType, EntityExternal],
        ),
        (
            "<!DOCTYPE a [<!ENTITY b 'http://www.w3.org/2000/svg'><!ENTITY nbsp \"&#160;\">]>",
            &[DocumentType],
        ),
        (
            "<!DOCTYPE a [<!ENTITY % b 'http://www.w3.org/2000/svg'>]>",
            &[DocumentType, EntityInternal],
        ),
        ("<!DOCTYPE a [<!ENTITY b 'http://a/' 'c'>]>", &[DocumentType, EntityInternal]),
        ("<!DOCTYPE a [<!ENTITY b NDATA 'http://a/'>]>", &[DocumentType, EntityInternal]),
    ] {
        let body = format!("<?xml version='1.0'?>{head}<a>t</a>");
        let (delivered, parser) = read(body.as_bytes());
        assert_eq!((delivered, parser.failure()), (events(&["t"]), None), "{body}");
        assert_eq!(parser.differences().iter().collect::<Vec<_>>(), expected, "{body}");
    }
}

#[test]
fn entities_are_not_expanded() {
    let (delivered, parser) = read(b"<!DOCTYPE a [<!ENTITY b 'c'>]><a x='1&b;2'>3&b;&nbsp;4</a>");
    assert_eq!((delivered, parser.failure()), (events(&["@1&b;2", "3&b;&nbsp;4"]), None));
    assert!(parser.differences().have(Difference::EntityReference));
    for (head, text, expected) in [
        ("<!DOCTYPE a [<!ENTITY b 'http://www.w3.org/'>]>", "&b;", false),
        ("<!DOCTYPE a [<!ENTITY b 'http://www.w3.org/'>]>", "&c;", true),
        ("<!DOCTYPE a SYSTEM 'http://www.w3.org/x'>", "&nbsp;&eacute;", false),
        ("<!DOCTYPE a SYSTEM 'http://www.w3.org/x'>", "&semi;", true),
        ("<!DOCTYPE a SYSTEM 'http://evil.example/x'>", "&nbsp;", true),
        ("<!DOCTYPE a>", "&nbsp;", true),
    ] {
        let (_, parser) = read(format!("{head}<a b='{text}'/>").as_bytes());
        let is_noted = parser.differences().have(Difference::EntityReference);
        assert_eq!((parser.failure(), is_noted), (None, expected), "{head} {text}");
    }
    let many: String = (0..65).map(|it| format!("<!ENTITY a{it} 'urn:a'>")).collect();
    for (subset, expected) in [
        (many.as_str(), true),
        (&format!("<!ENTITY a 'http://{}'>", "a".repeat(2_000)), true),
        (&format!("<!ENTITY {} 'urn:a'>", "a".repeat(80)), true),
        (&format!("<!ENTITY {} 'urn:a'>", "a".repeat(64)), false),
    ] {
        let (_, parser) = read(format!("<!DOCTYPE a [{subset}]><a/>").as_bytes());
        let is_noted = parser.differences().have(Difference::EntityInternal);
        assert_eq!((parser.failure(), is_noted), (None, expected), "{subset:.60}");
    }
    // Differences in a document type are reported even if parsing ends within it.
    let (_, parser) = read(b"<!DOCTYPE a [<!ENTITY b SYSTEM 'c'> ?");
    assert!(parser.differences().have(Difference::EntityExternal));
}

#[test]
fn limits_are_problems() {
    use Problem::*;
    let limits = Limits {
        arguments_max: 3,
        name_bytes_max: 4,
        value_bytes_max: 5,
        depth_max: 3,
        attributes_max: 2,
        open_names_bytes_max: 6,
        declaration_bytes_max: 30,
        ..Limits::DEFAULT
    };
    for (body, expected, problem) in [
        ("<a x='1' y='2'>3</a>", &["@1", "@2", "3"][..], None),
        ("<a x='1' y='2'>3<b>4</b></a>", &["@1", "@2", "3"], Some((ArgumentsLimit, 22))),
        ("<a x='1' y='2' z='3'/>", &["@1", "@2"], Some((AttributesLimit, 16))),
        ("<a x='12345'>12345</a>", &["@12345", "12345"], None),
        ("<a x='123456'/>", &["@12345"], Some((ValueLimit, 11))),
        ("<a>123456</a>", &["12345"], Some((ValueLimit, 8))),
        ("<a>1234&#228;</a>", &["1234\\xc3"], Some((ValueLimit, 12))),
        ("<a>     <b>1</b></a>", &["1"], None),
        ("<a>      <b>1</b></a>", &[], Some((ValueLimit, 8))),
        ("<abcd/>", &[], None),
        ("<abcde/>", &[], Some((NameLimit, 5))),
        ("<a>1&abcde;</a>", &["1"], Some((NameLimit, 9))),
        ("<a><b><c>1</c></b></a>", &["1"], None),
        ("<a><b><c>1<d/></c></b></a>", &["1"], Some((DepthLimit, 12))),
        ("<abc><ab><ab/></ab></abc>", &[], Some((OpenNamesLimit, 12))),
        ("<!DOCTYPE a [<!--          -->]><a/>", &[], Some((DeclarationLimit, 31))),
        (
            "<?p                            ?><a/>",
            &["<?p                            ?"],
            Some((DeclarationLimit, 31)),
        ),
        ("<?p?><?q?><?r?><?s?><a/>", &["<?p?>", "<?q?>", "<?r?>"], Some((ArgumentsLimit, 19))),
    ] {
        let (delivered, parser) = read_limited(body.as_bytes(), limits);
        let failure = problem.map(|(problem, offset)| Failure { problem, offset });
        assert_eq!((delivered, parser.failure()), (events(expected), failure), "{body}");
    }
}

#[test]
fn noise_never_panics_and_cuts_do_not_matter() {
    let valid = b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><a x='&lt;'>t<![CDATA[u]]>&b;<b/>\r\n<!-- --></a>";
    let alphabet = b"<>/!?-[]&;#'\"= \r\nab\xc3\xa4x";
    for seed in 0..250 {
        let mut random = Random::new(seed);
        let small = Limits {
            value_bytes_max: 3,
            arguments_max: 2,
            name_bytes_max: 2,
            depth_max: 2,
            ..Limits::DEFAULT
        };
        for body in [mutated(&mut random, valid, alphabet), noise(&mut random, alphabet, 40)] {
            read(&body);
            read_limited(&body, small);
        }
    }
}

#[test]
fn hostile_documents_cost_little() {
    let read = |body: &[u8]| {
        let mut parser = Xml::new(Limits::DEFAULT);
        let mut to = Vec::<Event>::new();
        parser.feed(body, &mut to);
        parser.finish(&mut to);
        parser.failure().map(|failure| failure.problem)
    };
    assert_eq!(read(&b"<a>".repeat(300_000)), Some(Problem::DepthLimit));
    assert_eq!(
        read(&[b"<a>".to_vec(), b"<b/>".repeat(300_000)].concat()),
        Some(Problem::Unfinished)
    );
    assert_eq!(
        read(&[b"<a>".to_vec(), vec![b'&'; 1_000_000]].concat()),
        Some(Problem::XmlReference)
    );
    assert_eq!(
        read(&[b"<a><![CDATA[".to_vec(), vec![b']'; 1_000_000]].concat()),
        Some(Problem::Unfinished)
    );
    assert_eq!(
        read(&[b"<!--".to_vec(), b"- ".repeat(500_000)].concat()),
        Some(Problem::Unfinished)
    );
    let attributes: Vec<u8> =
        (0..100_000).flat_map(|number| format!(" a{number}=''").into_bytes()).collect();
    assert_eq!(read(&[b"<a".to_vec(), attributes].concat()), Some(Problem::AttributesLimit));
}
