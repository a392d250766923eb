//! Limits of body parsers.

/// Limits of all buffers and counters. If one is exceeded, parsing ends with a [`super::Problem`]; everything before it is
/// delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of arguments of a body or query; in XML, of texts and attribute values together. ModSecurity's
    /// SecArgumentsLimit.
    pub arguments_max: u32,
    /// Maximum length of an argument's name; in JSON, of the whole path; in XML, of the name of an element, attribute
    /// or entity.
    pub name_bytes_max: u32,
    /// Maximum length of a value. Of a longer value, the part within the limit is delivered.
    pub value_bytes_max: u32,
    /// Maximum nesting depth of arrays and objects, or elements. ModSecurity's SecRequestBodyJsonDepthLimit.
    pub depth_max: u16,
    /// Maximum number of parts of a multipart body.
    pub parts_max: u32,
    /// Number of files in a multipart body above which [`super::MultipartFlag::FileLimitExceeded`] is set. ModSecurity's
    /// SecUploadFileLimit.
    pub files_max: u32,
    /// Maximum number of header lines of a part.
    pub part_headers_max: u16,
    /// Maximum length of a part's header line, including folded lines.
    pub part_header_bytes_max: u32,
    /// Maximum length of a boundary. RFC 2046 allows 70.
    pub boundary_bytes_max: u16,
    /// Maximum number of attributes of an XML element.
    pub attributes_max: u16,
    /// Maximum total length of the names of all open XML elements.
    pub open_names_bytes_max: u32,
    /// Maximum length of a document type declaration, including its internal subset, of a processing instruction or of
    /// an XML declaration.
    pub declaration_bytes_max: u32,
}

impl Limits {
    /// Limits for all sites: the values of ModSecurity's recommended configuration, if it has them. Programs send lists of a
    /// thousand objects and images in strings, so there are more arguments than there, and a value may fill a body.
    pub const DEFAULT: Self = Self {
        arguments_max: 10_000,
        name_bytes_max: 4 * 1024,
        value_bytes_max: 64 * 1024 * 1024,
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

/// Appends bytes up to the limit. Returns the number of bytes appended.
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
