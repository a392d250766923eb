//! What a body may cost.

/// The bounds of every buffer and counter. What exceeds one is a problem of its own; what came before it is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Arguments of a body or query; of XML, texts and attribute values together. ModSecurity's SecArgumentsLimit.
    pub arguments_max: u32,
    /// Bytes of an argument's name; of JSON, of the whole path; of XML, of a name of an element, attribute or entity.
    pub name_bytes_max: u32,
    /// Bytes of a value. A longer one is delivered up to here.
    pub value_bytes_max: u32,
    /// How deep arrays and objects, or elements, may nest. ModSecurity's SecRequestBodyJsonDepthLimit.
    pub depth_max: u16,
    /// Parts of a multipart body.
    pub parts_max: u32,
    /// Files of a multipart body, beyond which [`super::MultipartFlag::FileLimitExceeded`] is set. ModSecurity's SecUploadFileLimit.
    pub files_max: u32,
    /// Header lines of a part.
    pub part_headers_max: u16,
    /// Bytes of a header line of a part, folded lines included.
    pub part_header_bytes_max: u32,
    /// Bytes of a boundary. RFC 2046 allows 70.
    pub boundary_bytes_max: u16,
    /// Attributes of an XML element.
    pub attributes_max: u16,
    /// Bytes of the names of all open XML elements together.
    pub open_names_bytes_max: u32,
    /// Bytes of a document type declaration, internal subset included; of a processing instruction or XML declaration too.
    pub declaration_bytes_max: u32,
}

impl Limits {
    /// What suits a site without large forms; ModSecurity's recommended configuration where it has a number.
    pub const DEFAULT: Self = Self {
        arguments_max: 1000,
        name_bytes_max: 4 * 1024,
        value_bytes_max: 128 * 1024,
        depth_max: 512,
        parts_max: 1000,
        files_max: 100,
        part_headers_max: 16,
        part_header_bytes_max: 4 * 1024,
        boundary_bytes_max: 70,
        attributes_max: 256,
        open_names_bytes_max: 64 * 1024,
        declaration_bytes_max: 16 * 1024,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

const _: () = assert!(Limits::DEFAULT.boundary_bytes_max <= 70);
const _: () = assert!(Limits::DEFAULT.name_bytes_max <= Limits::DEFAULT.open_names_bytes_max);

/// Appends as much as fits below the limit, and returns how many bytes that was.
pub(super) fn append(buffer: &mut Vec<u8>, bytes: &[u8], bytes_max: u32) -> usize {
    let room = (bytes_max as usize).saturating_sub(buffer.len());
    let taken = bytes.get(..room).unwrap_or(bytes);
    buffer.extend_from_slice(taken);
    taken.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appends_up_to_the_limit() {
        let mut buffer = b"ab".to_vec();
        assert_eq!(append(&mut buffer, b"cd", 5), 2);
        assert_eq!(append(&mut buffer, b"ef", 5), 1);
        assert_eq!(append(&mut buffer, b"gh", 5), 0);
        assert_eq!(append(&mut buffer, b"gh", 1), 0);
        assert_eq!(buffer, b"abcde");
    }
}
