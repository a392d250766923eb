//! The result of parsing a body does not depend on how it is split.

use weir_waf::body::{Body, Limits, Processor, Settings, Sink};

/// Limits that small inputs can reach.
const LIMITS: Limits = Limits {
    arguments_max: 12,
    name_bytes_max: 24,
    value_bytes_max: 48,
    depth_max: 8,
    parts_max: 6,
    files_max: 2,
    part_headers_max: 4,
    part_header_bytes_max: 96,
    boundary_bytes_max: 12,
    attributes_max: 4,
    open_names_bytes_max: 64,
    declaration_bytes_max: 64,
};

/// The values of a body, in order. The pieces of a file's content are joined.
#[derive(Debug, Default, PartialEq)]
struct Delivered(Vec<(&'static str, Vec<u8>, Vec<u8>)>);

impl Delivered {
    fn add(&mut self, what: &'static str, name: &[u8], value: &[u8]) {
        self.0.push((what, name.to_vec(), value.to_vec()));
    }
}

impl Sink for Delivered {
    fn argument(&mut self, name: &[u8], value: &[u8]) {
        self.add("argument", name, value);
    }

    fn file_start(&mut self, field: &[u8], file_name: &[u8]) {
        self.add("file start", field, file_name);
    }

    fn file_content(&mut self, bytes: &[u8]) {
        match self.0.last_mut() {
            Some(("content", _, content)) => content.extend_from_slice(bytes),
            _ => self.add("content", b"", bytes),
        }
    }

    fn file(&mut self, field: &[u8], file_name: &[u8], size_bytes: u64) {
        self.add(if size_bytes == 0 { "empty file" } else { "file" }, field, file_name);
    }

    fn part_header(&mut self, part: &[u8], line: &[u8]) {
        self.add("header", part, line);
    }

    fn xml_text(&mut self, text: &[u8]) {
        assert!(!text.is_empty());
        self.add("text", b"", text);
    }

    fn xml_instruction(&mut self, text: &[u8]) {
        assert!(text.starts_with(b"<?"));
        self.add("instruction", b"", text);
    }

    fn xml_attribute(&mut self, value: &[u8]) {
        self.add("attribute", b"", value);
    }
}

/// Parses a body whole, in two pieces, and byte by byte, with usual limits and with small limits.
pub fn check(processor: Processor, content_type: &[u8], body: &[u8], cut: usize) {
    for limits in [Limits::DEFAULT, LIMITS] {
        let settings = Settings { limits, ..Settings::DEFAULT };
        let read = |pieces: &mut dyn Iterator<Item = &[u8]>| {
            let mut to = Delivered::default();
            let mut reading = Body::new(processor, content_type, &settings);
            pieces.for_each(|piece| reading.feed(piece, &mut to));
            reading.finish(&mut to);
            (to, reading.failure(), reading.differences())
        };
        let whole = read(&mut [body].into_iter());
        let (one, other) = body.split_at(cut.min(body.len()));
        let halves = read(&mut [one, other].into_iter());
        assert_eq!(halves, whole, "cut at {cut}: {}", body.escape_ascii());
        let bytes = read(&mut body.chunks(1));
        assert_eq!(bytes, whole, "byte by byte: {}", body.escape_ascii());
        if let Some(failure) = whole.1 {
            assert!(failure.offset <= body.len() as u64, "{failure:?}");
        }
        let arguments = whole.0.0.iter().filter(|(what, ..)| *what == "argument");
        for (count, (_, name, value)) in (1..).zip(arguments) {
            assert!(count <= limits.arguments_max, "{count} arguments");
            assert!(value.len() <= limits.value_bytes_max as usize, "{} bytes", value.len());
            let name_bytes_max = limits.name_bytes_max as usize;
            assert!(name.len() <= name_bytes_max, "a name of {} bytes", name.len());
        }
    }
}

/// Checks an input. Its first byte is the position of the split, the rest is the body.
pub fn check_input(processor: Processor, content_type: &[u8], input: &[u8]) {
    if let Some((cut, body)) = input.split_first() {
        check(processor, content_type, body, usize::from(*cut));
    }
}

/// Checks a multipart input. Its first line is the value of Content-Type.
pub fn check_multipart(input: &[u8]) {
    let Some((cut, rest)) = input.split_first() else { return };
    let mut parts = rest.splitn(2, |byte| *byte == b'\n');
    let (content_type, body) = (parts.next().unwrap_or_default(), parts.next());
    let body = body.unwrap_or_default();
    check(Processor::Multipart, content_type, body, usize::from(*cut));
    check(Processor::Multipart, b"multipart/form-data; boundary=b", body, usize::from(*cut));
}
