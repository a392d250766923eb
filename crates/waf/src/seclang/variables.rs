//! Variables and targets of rules.

use super::names::NamePattern;
use super::{SecLangProblem, wrong, wrong_help};

macro_rules! variables {
    ($($name:ident = $text:literal $kind:ident;)*) => {
        /// A SecLang variable. Collections have named members.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "each is named as the language names it, and the reference manual describes it")]
        pub enum Variable { $($name,)* }

        impl Variable {
            /// The number of variables.
            pub const COUNT: usize = [$($text,)*].len();

            /// The variable with this name in SecLang, ignoring case.
            pub fn from_name(name: &str) -> Option<Self> {
                $(if name.eq_ignore_ascii_case($text) { return Some(Self::$name); })*
                None
            }

            /// The name in SecLang.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Whether the variable has named members.
            pub fn is_collection(self) -> bool {
                match self { $(Self::$name => variables!(@ $kind),)* }
            }
        }
    };
    (@ many) => { true };
    (@ one) => { false };
}

variables! {
    Args = "ARGS" many;
    ArgsCombinedSize = "ARGS_COMBINED_SIZE" one;
    ArgsGet = "ARGS_GET" many;
    ArgsGetNames = "ARGS_GET_NAMES" many;
    ArgsNames = "ARGS_NAMES" many;
    ArgsPost = "ARGS_POST" many;
    ArgsPostNames = "ARGS_POST_NAMES" many;
    Duration = "DURATION" one;
    Env = "ENV" many;
    Files = "FILES" many;
    FilesCombinedSize = "FILES_COMBINED_SIZE" one;
    FilesNames = "FILES_NAMES" many;
    FilesSizes = "FILES_SIZES" many;
    FilesTmpContent = "FILES_TMP_CONTENT" many;
    Geo = "GEO" many;
    Global = "GLOBAL" many;
    HighestSeverity = "HIGHEST_SEVERITY" one;
    InboundDataError = "INBOUND_DATA_ERROR" one;
    Ip = "IP" many;
    MatchedVar = "MATCHED_VAR" one;
    MatchedVarName = "MATCHED_VAR_NAME" one;
    MatchedVars = "MATCHED_VARS" many;
    MatchedVarsNames = "MATCHED_VARS_NAMES" many;
    MultipartBoundaryQuoted = "MULTIPART_BOUNDARY_QUOTED" one;
    MultipartBoundaryWhitespace = "MULTIPART_BOUNDARY_WHITESPACE" one;
    MultipartCrlfLfLines = "MULTIPART_CRLF_LF_LINES" one;
    MultipartDataAfter = "MULTIPART_DATA_AFTER" one;
    MultipartDataBefore = "MULTIPART_DATA_BEFORE" one;
    MultipartFileLimitExceeded = "MULTIPART_FILE_LIMIT_EXCEEDED" one;
    MultipartFilename = "MULTIPART_FILENAME" many;
    MultipartHeaderFolding = "MULTIPART_HEADER_FOLDING" one;
    MultipartInvalidHeaderFolding = "MULTIPART_INVALID_HEADER_FOLDING" one;
    MultipartInvalidPart = "MULTIPART_INVALID_PART" one;
    MultipartInvalidQuoting = "MULTIPART_INVALID_QUOTING" one;
    MultipartLfLine = "MULTIPART_LF_LINE" one;
    MultipartMissingSemicolon = "MULTIPART_MISSING_SEMICOLON" one;
    MultipartName = "MULTIPART_NAME" many;
    MultipartPartHeaders = "MULTIPART_PART_HEADERS" many;
    MultipartStrictError = "MULTIPART_STRICT_ERROR" one;
    MultipartUnmatchedBoundary = "MULTIPART_UNMATCHED_BOUNDARY" one;
    OutboundDataError = "OUTBOUND_DATA_ERROR" one;
    QueryString = "QUERY_STRING" one;
    RemoteAddr = "REMOTE_ADDR" one;
    RemotePort = "REMOTE_PORT" one;
    ReqbodyError = "REQBODY_ERROR" one;
    ReqbodyErrorMsg = "REQBODY_ERROR_MSG" one;
    ReqbodyProcessor = "REQBODY_PROCESSOR" one;
    ReqbodyProcessorError = "REQBODY_PROCESSOR_ERROR" one;
    ReqbodyProcessorErrorMsg = "REQBODY_PROCESSOR_ERROR_MSG" one;
    RequestBasename = "REQUEST_BASENAME" one;
    RequestBody = "REQUEST_BODY" one;
    RequestBodyLength = "REQUEST_BODY_LENGTH" one;
    RequestCookies = "REQUEST_COOKIES" many;
    RequestCookiesNames = "REQUEST_COOKIES_NAMES" many;
    RequestFilename = "REQUEST_FILENAME" one;
    RequestHeaders = "REQUEST_HEADERS" many;
    RequestHeadersNames = "REQUEST_HEADERS_NAMES" many;
    RequestLine = "REQUEST_LINE" one;
    RequestMethod = "REQUEST_METHOD" one;
    RequestProtocol = "REQUEST_PROTOCOL" one;
    RequestUri = "REQUEST_URI" one;
    RequestUriRaw = "REQUEST_URI_RAW" one;
    ResponseBody = "RESPONSE_BODY" one;
    ResponseContentLength = "RESPONSE_CONTENT_LENGTH" one;
    ResponseContentType = "RESPONSE_CONTENT_TYPE" one;
    ResponseHeaders = "RESPONSE_HEADERS" many;
    ResponseHeadersNames = "RESPONSE_HEADERS_NAMES" many;
    ResponseProtocol = "RESPONSE_PROTOCOL" one;
    ResponseStatus = "RESPONSE_STATUS" one;
    ServerAddr = "SERVER_ADDR" one;
    ServerName = "SERVER_NAME" one;
    ServerPort = "SERVER_PORT" one;
    Session = "SESSION" many;
    StatusLine = "STATUS_LINE" one;
    Tx = "TX" many;
    UniqueId = "UNIQUE_ID" one;
    UrlencodedError = "URLENCODED_ERROR" one;
    User = "USER" many;
    Xml = "XML" many;
}

impl Variable {
    /// Whether ModSecurity stores the values across requests.
    pub fn is_stored(self) -> bool {
        matches!(self, Self::Global | Self::Ip | Self::Session | Self::User)
    }

    /// Whether the length of its values depends on the length of the request.
    pub fn is_long_with_requests(self) -> bool {
        matches!(
            self,
            Self::Args
                | Self::ArgsGet
                | Self::ArgsGetNames
                | Self::ArgsNames
                | Self::ArgsPost
                | Self::ArgsPostNames
                | Self::Files
                | Self::FilesNames
                | Self::FilesTmpContent
                | Self::MultipartFilename
                | Self::MultipartName
                | Self::MultipartPartHeaders
                | Self::QueryString
                | Self::RequestBasename
                | Self::RequestBody
                | Self::RequestCookies
                | Self::RequestCookiesNames
                | Self::RequestFilename
                | Self::RequestHeaders
                | Self::RequestHeadersNames
                | Self::RequestLine
                | Self::RequestUri
                | Self::RequestUriRaw
                | Self::Xml
        )
    }

    /// The reason why the variable is unsupported; `None`: it is supported. A rule with an unsupported variable can only be
    /// loaded if the rule is never evaluated.
    pub fn why_absent(self) -> Option<&'static str> {
        match self {
            Self::Duration => {
                Some("the rules see no clock; the time that they may take is limited by `budget`")
            }
            Self::Env => Some("the rules see no environment"),
            Self::Geo => Some(
                "weir has no database of places; match `client.ip` against a data set in a rule of weir's",
            ),
            _ => None,
        }
    }
}

/// A selection of members of a collection.
#[derive(Debug, Clone)]
pub enum Selector {
    /// All members.
    All,
    /// The members with this name, ignoring case.
    Name(Box<str>),
    /// The members with a matching name.
    Pattern(NamePattern),
}

impl Selector {
    /// Whether the selector selects a member with this name.
    pub fn takes(&self, name: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::Name(wanted) => wanted.as_bytes().eq_ignore_ascii_case(name),
            Self::Pattern(pattern) => pattern.is_match(name),
        }
    }
}

impl PartialEq for Selector {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, Self::All) => true,
            (Self::Name(one), Self::Name(other)) => one == other,
            (Self::Pattern(one), Self::Pattern(other)) => one.as_str() == other.as_str(),
            _ => false,
        }
    }
}

/// The use of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    /// The values are inspected.
    Values,
    /// The number of values is inspected (`&`).
    Count,
    /// The values are excluded (`!`).
    Excluded,
}

/// A target of a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The use.
    pub kind: TargetKind,
    /// The variable.
    pub variable: Variable,
    /// The selected members.
    pub selector: Selector,
}

impl Target {
    /// Whether a template may use this collection without a member.
    pub(super) fn may_stand_alone(variable: Variable) -> bool {
        !matches!(variable, Variable::Tx) && !variable.is_stored()
    }

    /// Parses a list of targets: `ARGS|!ARGS:id|&REQUEST_HEADERS:Host`.
    pub(crate) fn parse_list(text: &str) -> Result<Vec<Self>, SecLangProblem> {
        let mut targets = Vec::new();
        for part in parts(text) {
            if part.is_empty() {
                return Err(wrong(format!("`{text}` has an empty variable")));
            }
            targets.push(Self::parse(part)?);
        }
        if targets.is_empty() {
            return Err(wrong("there is no variable"));
        }
        Ok(targets)
    }

    fn parse(text: &str) -> Result<Self, SecLangProblem> {
        let (kind, rest) = match text.split_at_checked(1) {
            Some(("!", rest)) => (TargetKind::Excluded, rest),
            Some(("&", rest)) => (TargetKind::Count, rest),
            _ => (TargetKind::Values, text),
        };
        let (name, member) = match rest.split_once([':', '.']) {
            Some((name, member)) => (name, Some(member)),
            None => (rest, None),
        };
        let variable = Variable::from_name(name).ok_or_else(|| unknown(name))?;
        let selector = match member {
            None => Selector::All,
            Some(_) if !variable.is_collection() => {
                return Err(wrong(format!("`{rest}`: {name} has no members")));
            }
            Some(member) => selector(variable, member)?,
        };
        Ok(Self { kind, variable, selector })
    }
}

fn unknown(name: &str) -> SecLangProblem {
    let upper = name.to_ascii_uppercase();
    let help = match upper.as_str() {
        "AUTH_TYPE" | "REMOTE_USER" => Some("match the header Authorization".to_owned()),
        _ if upper.starts_with("TIME") => {
            Some("use conditions on the time in a rule of weir's".to_owned())
        }
        _ => None,
    };
    (format!("there is no variable `{name}` here"), help)
}

/// Splits a list at bars, except within `/…/`.
fn parts(text: &str) -> Vec<&str> {
    let (mut found, mut start, mut in_pattern) = (Vec::new(), 0, false);
    let mut before = ' ';
    for (at, char) in text.char_indices() {
        match char {
            // An XPath also begins with a slash, but has no closing slash.
            '/' if !in_pattern && before == ':' => {
                in_pattern =
                    !text[start..at].trim_start_matches(['!', '&']).eq_ignore_ascii_case("XML:");
            }
            '/' if in_pattern && before != '\\' => in_pattern = false,
            '|' if !in_pattern => {
                found.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        before = char;
    }
    found.push(text[start..].trim());
    found
}

fn selector(variable: Variable, member: &str) -> Result<Selector, SecLangProblem> {
    // A name may be quoted.
    let member = member.strip_prefix('\'').and_then(|it| it.strip_suffix('\'')).unwrap_or(member);
    if variable == Variable::Xml {
        // Only the texts or attributes of the whole document are supported.
        return match member {
            "/*" | "//@*" => Ok(Selector::Name(member.into())),
            _ => Err(wrong_help(
                format!("`XML:{member}` is an XPath that is not supported"),
                "use XML:/* for texts, or XML://@* for attributes",
            )),
        };
    }
    let pattern = member.strip_prefix('/').and_then(|it| it.strip_suffix('/'));
    match pattern {
        Some(pattern) => NamePattern::new(pattern).map(Selector::Pattern),
        None if member.is_empty() => Err(wrong("a member's name is missing behind the colon")),
        None => Ok(Selector::Name(member.into())),
    }
}
