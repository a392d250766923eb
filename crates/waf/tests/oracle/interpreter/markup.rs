//! Values that are markup: with their references decoded, and the texts and attributes of their elements.

use weir_waf::body::{Body, Processor, Settings, Sink};
use weir_waf::transformation::Transformation;

/// What a reader of documents sees in a value, unless rules see it in the value itself.
pub fn contents(value: &[u8]) -> Vec<Vec<u8>> {
    let has_sections = has(value, b"<![CDATA[");
    let is_document = value.trim_ascii_start().starts_with(b"<");
    let has_contents = has_reference(value) || (has_sections && is_document);
    if !has_contents {
        return Vec::new();
    }
    let mut found = Pieces::default();
    let mut decoded = Vec::new();
    if Transformation::HtmlEntityDecode.apply(value, &mut decoded) {
        found.0.push(decoded);
    }
    if is_document {
        let mut reading = Body::new(Processor::Xml, b"", &Settings::DEFAULT);
        reading.feed(value.trim_ascii_start(), &mut found);
        reading.finish(&mut found);
        if !has_sections {
            found.0.retain(|text| !has(value, text));
        }
    }
    found.0
}

fn has(text: &[u8], part: &[u8]) -> bool {
    part.is_empty() || text.windows(part.len()).any(|it| it == part)
}

/// Whether a value has the number of a character of ASCII: `&#39;`, `&#x27;`.
fn has_reference(value: &[u8]) -> bool {
    let text = String::from_utf8_lossy(value).to_lowercase();
    text.split("&#").skip(1).any(|number| {
        let (digits, radix) = number.strip_prefix('x').map_or((number, 10), |it| (it, 16));
        let digits: String = digits.chars().take_while(|it| it.is_digit(radix)).collect();
        let digits = digits.trim_start_matches('0');
        !digits.is_empty() && u32::from_str_radix(digits, radix).is_ok_and(|it| it < 0x80)
    })
}

#[derive(Default)]
struct Pieces(Vec<Vec<u8>>);

impl Sink for Pieces {
    fn xml_text(&mut self, text: &[u8]) {
        self.0.push(text.to_vec());
    }

    fn xml_attribute(&mut self, value: &[u8]) {
        self.0.push(value.to_vec());
    }
}
