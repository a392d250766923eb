//! Where parsers deliver what they find.

/// Takes what is found in a body, in the order of the body. Every method does nothing unless it is implemented.
pub trait Sink {
    /// A named value: a form field or a leaf of JSON.
    fn argument(&mut self, name: &[u8], value: &[u8]) {
        let _ = (name, value);
    }

    /// A file of a multipart body begins: the field's name, the file's name as sent. Pieces of its content follow, then [`Self::file`].
    fn file_start(&mut self, field: &[u8], file_name: &[u8]) {
        let _ = (field, file_name);
    }

    /// The next piece of the file that began last. How content is cut into pieces depends on how the body was cut.
    fn file_content(&mut self, bytes: &[u8]) {
        let _ = bytes;
    }

    /// A file of a multipart body has ended: the field's name, the file's name as sent, its size in bytes.
    fn file(&mut self, field: &[u8], file_name: &[u8], size_bytes: u64) {
        let _ = (field, file_name, size_bytes);
    }

    /// A header line of a part without its line end, folded lines joined by a space. The part's name is empty where the part has none.
    fn part_header(&mut self, part: &[u8], line: &[u8]) {
        let _ = (part, line);
    }

    /// Text between two tags of XML, without the blanks at its ends. Comments and CDATA sections do not divide it. Never empty.
    fn xml_text(&mut self, text: &[u8]) {
        let _ = text;
    }

    /// The same text with its blanks, or blanks alone between two tags: what a server has that joins the texts of a document.
    fn xml_content(&mut self, content: &[u8]) {
        let _ = content;
    }

    /// The value of an XML attribute.
    fn xml_attribute(&mut self, value: &[u8]) {
        let _ = value;
    }
}

/// Takes nothing.
impl Sink for () {}
