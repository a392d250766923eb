//! All checks.

use super::action::Action;

/// Families of checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// Encoding of the target.
    Evasion,
    /// Requirements of HTTP for a request head.
    Compliance,
    /// Lengths and counts, methods, file types.
    Lengths,
    /// Cookies.
    Cookies,
    /// Bodies.
    Documents,
    /// Conformance to an OpenAPI document.
    Declared,
}

macro_rules! checks {
    ($($name:ident = $text:literal, $family:ident, $action:ident, $sentence:literal;)*) => {
        /// A check.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Check { $(#[doc = $sentence] $name,)* }

        impl Check {
            /// All checks.
            pub const ALL: [Self; [$($text,)*].len()] = [$(Self::$name,)*];

            /// The name in the configuration, in logs and in metrics.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The check with this name.
            pub fn named(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$name),)* _ => None }
            }

            /// The family.
            pub fn family(self) -> Family {
                match self { $(Self::$name => Family::$family,)* }
            }

            /// The default action.
            pub fn default_action(self) -> Action {
                match self { $(Self::$name => Action::$action,)* }
            }

            /// A sentence that describes a finding.
            pub fn sentence(self) -> &'static str {
                match self { $(Self::$name => $sentence,)* }
            }
        }
    };
}

impl Check {
    /// The status of the response to a blocked request.
    pub fn status(self) -> u16 {
        match self {
            Self::Method | Self::UndeclaredMethod => 405,
            Self::BodyLength | Self::RequestLength => 413,
            Self::UrlLength | Self::QueryLength => 414,
            Self::HeaderLength | Self::HeaderCount | Self::CookieLength | Self::CookieCount => 431,
            _ => match self.family() {
                Family::Compliance | Family::Documents => 400,
                _ => 403,
            },
        }
    }
}

checks! {
    MultipleDecoding = "multiple_decoding", Evasion, Block, "The target is encoded more often than it may be.";
    PercentU = "percent_u", Evasion, Block, "The target has an escape of the form %uXXXX.";
    IisUnicode = "iis_unicode", Evasion, Block, "An escape %uXXXX stands for a character that IIS takes for one of ASCII.";
    IisStream = "iis_stream", Evasion, Block, "The path names an alternate data stream.";
    Utf8Overlong = "utf8_overlong", Evasion, Block, "The target has a character in an overlong form of UTF-8.";
    Utf8Invalid = "utf8_invalid", Evasion, Alarm, "The target is not valid UTF-8 when it is decoded.";
    DirectoryTraversal = "directory_traversal", Evasion, Block, "The path leaves a directory by `..`, in whatever encoding.";
    Backslash = "backslash", Evasion, Block, "The path has a backslash, which some servers take for a slash.";
    NulByte = "nul_byte", Evasion, Block, "A value has a byte 0, at which some programs end it.";
    BadEscape = "bad_escape", Evasion, Alarm, "A percent sign is not followed by two hexadecimal digits.";
    BareByte = "bare_byte", Evasion, Alarm, "The target has a byte above 127 that is not encoded.";
    ControlInPath = "control_in_path", Evasion, Block, "The path has a tab, line end or other control character.";
    MultipleSlashes = "multiple_slashes", Evasion, Off, "The path has several slashes in a row.";
    SemicolonInPath = "semicolon_in_path", Evasion, Off, "A path segment has a parameter behind a semicolon.";
    SemicolonTraversal = "semicolon_traversal", Evasion, Block, "A path segment is `..` with a parameter behind it (CVE-2019-14994).";
    TrailingDot = "trailing_dot", Evasion, Off, "The path ends with a dot, which Windows drops.";

    HostMissing = "host_missing", Compliance, Block, "The request has no Host.";
    HostRepeated = "host_repeated", Compliance, Block, "The request has several Host headers.";
    HostMalformed = "host_malformed", Compliance, Block, "The Host is not a valid host.";
    HostIsAddress = "host_is_address", Compliance, Alarm, "The Host is an IP address.";
    ContentLengthRepeated = "content_length_repeated", Compliance, Block, "The request has several Content-Length values.";
    ContentLengthMalformed = "content_length_malformed", Compliance, Block, "The Content-Length is not a whole number.";
    ContentLengthWithChunked = "content_length_with_chunked", Compliance, Block, "The request has Content-Length beside Transfer-Encoding.";
    BodyInGet = "body_in_get", Compliance, Alarm, "A GET or HEAD request has a body.";
    ContentTypeMalformed = "content_type_malformed", Compliance, Block, "The Content-Type cannot be parsed.";
    ContentTypeMissing = "content_type_missing", Compliance, Alarm, "The request has a body and no Content-Type.";
    HeaderControl = "header_control", Compliance, Block, "A header's value has a control character.";

    Method = "method", Lengths, Block, "The method is not allowed.";
    FileType = "file_type", Lengths, Block, "The path's extension is not allowed.";
    UrlLength = "url_length", Lengths, Block, "The path is too long.";
    QueryLength = "query_length", Lengths, Block, "The query is too long.";
    RequestLength = "request_length", Lengths, Block, "The request is too long.";
    BodyLength = "body_length", Lengths, Block, "The body is too long.";
    HeaderLength = "header_length", Lengths, Block, "A header is too long.";
    HeaderCount = "header_count", Lengths, Block, "There are too many headers.";
    ParameterLength = "parameter_length", Lengths, Block, "A parameter's value is too long.";
    ParameterNameLength = "parameter_name_length", Lengths, Block, "A parameter's name is too long.";
    ParameterCount = "parameter_count", Lengths, Block, "There are too many parameters.";

    CookieLength = "cookie_length", Cookies, Block, "A cookie is too long.";
    CookieCount = "cookie_count", Cookies, Block, "There are too many cookies.";
    CookieMalformed = "cookie_malformed", Cookies, Alarm, "A cookie has characters that may not stand there.";
    CookieRepeated = "cookie_repeated", Cookies, Alarm, "A cookie comes twice.";
    CookieChanged = "cookie_changed", Cookies, Block, "A cookie is not as it was set here.";

    MultipartMalformed = "multipart_malformed", Documents, Block, "The multipart body is malformed.";
    MultipartAmbiguous = "multipart_ambiguous", Documents, Block, "Servers read this multipart body in different ways.";
    JsonMalformed = "json_malformed", Documents, Block, "The JSON is malformed.";
    JsonDepth = "json_depth", Documents, Block, "The JSON is nested too deep.";
    JsonSize = "json_size", Documents, Block, "The JSON has too many or too long values.";
    JsonRepeatedKey = "json_repeated_key", Documents, Block, "An object of the JSON has a key twice.";
    XmlMalformed = "xml_malformed", Documents, Block, "The XML is malformed.";
    XmlDepth = "xml_depth", Documents, Block, "The XML is nested too deep.";
    XmlSize = "xml_size", Documents, Block, "The XML has too many or too long values.";
    XmlDoctype = "xml_doctype", Documents, Alarm, "The XML has a document type.";
    XmlEntity = "xml_entity", Documents, Block, "The XML declares or uses an entity of its own, or names a definition elsewhere.";
    GraphqlDepth = "graphql_depth", Documents, Block, "The GraphQL query is nested too deep.";
    GraphqlBatch = "graphql_batch", Documents, Block, "The GraphQL request has too many queries or aliases.";
    UndeclaredPath = "undeclared_path", Declared, Block, "The path is not declared.";
    UndeclaredMethod = "undeclared_method", Declared, Block, "The method is not declared for the path.";
    UndeclaredParameter = "undeclared_parameter", Declared, Block, "The parameter is not declared.";
    UndeclaredBody = "undeclared_body", Declared, Block, "A body of this media type is not declared.";
    ParameterMissing = "parameter_missing", Declared, Block, "A parameter that has to be there is not.";
    ParameterType = "parameter_type", Declared, Block, "A parameter is of another type than is declared.";
    ParameterValue = "parameter_value", Declared, Block, "A parameter has a value that is not declared.";

    GraphqlIntrospection = "graphql_introspection", Documents, Off, "The GraphQL query asks for the schema.";
}
