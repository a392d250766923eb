//! The policy of checks.

use super::action::Action;
use super::catalogue::Check;

/// Limits of one file type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileType {
    /// The extension, in lower case and without the dot; empty for paths without one.
    pub extension: Box<str>,
    /// Maximum length of the path.
    pub url_bytes_max: Option<usize>,
    /// Maximum length of the query.
    pub query_bytes_max: Option<usize>,
    /// Maximum length of the body.
    pub body_bytes_max: Option<u64>,
}

/// Allowed file types.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FileTypes {
    /// All types except these.
    AllBut(Vec<Box<str>>),
    /// Only these types.
    Only(Vec<FileType>),
}

/// Limits of requests.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Maximum number of times that a target may be encoded.
    pub decodings_max: u8,
    /// Maximum length of the path.
    pub url_bytes_max: usize,
    /// Maximum length of the query.
    pub query_bytes_max: usize,
    /// Maximum length of the head and the body together.
    pub request_bytes_max: u64,
    /// Maximum length of the body.
    pub body_bytes_max: u64,
    /// Maximum length of a header, name and value.
    pub header_bytes_max: usize,
    /// Maximum number of headers.
    pub headers_max: usize,
    /// Maximum length of a parameter's value.
    pub parameter_bytes_max: usize,
    /// Maximum length of a parameter's name.
    pub parameter_name_bytes_max: usize,
    /// Maximum number of parameters.
    pub parameters_max: usize,
    /// Maximum length of a cookie, name and value.
    pub cookie_bytes_max: usize,
    /// Maximum number of cookies.
    pub cookies_max: usize,
    /// Maximum depth of a GraphQL query.
    pub graphql_depth_max: usize,
    /// Maximum number of queries in a GraphQL request, and of aliases.
    pub graphql_batch_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            decodings_max: 2,
            url_bytes_max: 2_048,
            query_bytes_max: 4_096,
            request_bytes_max: 64 << 20,
            body_bytes_max: 64 << 20,
            header_bytes_max: 8_192,
            headers_max: 100,
            parameter_bytes_max: 1 << 20,
            parameter_name_bytes_max: 256,
            parameters_max: 1_000,
            cookie_bytes_max: 4_096,
            cookies_max: 60,
            graphql_depth_max: 12,
            graphql_batch_max: 20,
        }
    }
}

/// Actions and limits of the checks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Policy {
    actions: [Action; Check::ALL.len()],
    /// Limits of requests.
    pub limits: Limits,
    /// Allowed methods.
    pub methods: Vec<Box<str>>,
    /// Allowed file types.
    pub file_types: FileTypes,
    /// Maximum lengths of the values of named parameters; they override the general limit.
    pub parameter_limits: Vec<(Box<str>, usize)>,
}

/// The methods that applications use, so without CONNECT and TRACE.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Extensions of files that are not intended for clients: copies, sources, keys, databases.
const FORBIDDEN_TYPES: [&str; 24] = [
    "asa", "bak", "bat", "cer", "cfg", "cmd", "conf", "config", "dat", "db", "dll", "exe", "ini",
    "jks", "key", "log", "mdb", "old", "pem", "pfx", "sh", "sql", "swp", "sqlite",
];

impl Default for Policy {
    fn default() -> Self {
        Self {
            actions: Check::ALL.map(Check::default_action),
            limits: Limits::default(),
            methods: METHODS.map(Into::into).to_vec(),
            file_types: FileTypes::AllBut(FORBIDDEN_TYPES.map(Into::into).to_vec()),
            parameter_limits: Vec::new(),
        }
    }
}

impl Policy {
    /// The action of a check.
    pub fn action(&self, check: Check) -> Action {
        self.actions[check as usize]
    }

    /// Sets the action of a check.
    pub fn set(&mut self, check: Check, action: Action) {
        self.actions[check as usize] = action;
    }
}
