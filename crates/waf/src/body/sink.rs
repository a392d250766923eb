//! The receiver of parsed values.

/// Receives the contents of a body, in the order of the body. By default, every method does nothing.
pub trait Sink {
    /// A named value: a form field or a JSON leaf.
    fn argument(&mut self, name: &[u8], value: &[u8]) {
        let _ = (name, value);
    }

    /// The start of a file in a multipart body: the field's name, and the file's name as sent. The content follows in
    /// pieces, then [`Self::file`].
    fn file_start(&mut self, field: &[u8], file_name: &[u8]) {
        let _ = (field, file_name);
    }

    /// The next piece of the current file. The pieces depend on how the body is split.
    fn file_content(&mut self, bytes: &[u8]) {
        let _ = bytes;
    }

    /// The end of a file in a multipart body: the field's name, the file's name as sent, and the size in bytes.
    fn file(&mut self, field: &[u8], file_name: &[u8], size_bytes: u64) {
        let _ = (field, file_name, size_bytes);
    }

    /// Another name of the last file: servers use either.
    fn other_file_name(&mut self, field: &[u8], file_name: &[u8]) {
        let _ = (field, file_name);
    }

    /// A header line of a part, without its line end; folded lines are joined by a space. `part` is empty for a part
    /// without a name.
    fn part_header(&mut self, part: &[u8], line: &[u8]) {
        let _ = (part, line);
    }

    /// Text between two XML tags, without blanks at its ends. Comments and CDATA sections do not split it. Never empty.
    fn xml_text(&mut self, text: &[u8]) {
        let _ = text;
    }

    /// The same text with its blanks, or only blanks between two tags. Servers that join the texts of a document need it.
    fn xml_content(&mut self, content: &[u8]) {
        let _ = content;
    }

    /// An XML processing instruction, from `<?` to `?>`. The end may be missing if parsing ended within.
    fn xml_instruction(&mut self, text: &[u8]) {
        let _ = text;
    }

    /// The value of an XML attribute.
    fn xml_attribute(&mut self, value: &[u8]) {
        let _ = value;
    }
}

/// Ignores everything.
impl Sink for () {}
