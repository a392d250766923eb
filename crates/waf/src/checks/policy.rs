//! What checks go by.

use super::action::Action;
use super::catalogue::Check;

/// What is allowed of one kind of file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileType {
    /// The extension, in lower case and without the dot; empty for paths without one.
    pub extension: Box<str>,
    /// Longest path.
    pub url_bytes_max: Option<usize>,
    /// Longest query.
    pub query_bytes_max: Option<usize>,
    /// Longest body.
    pub body_bytes_max: Option<u64>,
}

/// Which kinds of files may be asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FileTypes {
    /// All but these.
    AllBut(Vec<Box<str>>),
    /// These alone.
    Only(Vec<FileType>),
}

/// How much there may be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Times that a target may be encoded.
    pub decodings_max: u8,
    /// Longest path.
    pub url_bytes_max: usize,
    /// Longest query.
    pub query_bytes_max: usize,
    /// Longest head, and body with it.
    pub request_bytes_max: u64,
    /// Longest body.
    pub body_bytes_max: u64,
    /// Longest header, name and value.
    pub header_bytes_max: usize,
    /// Most headers.
    pub headers_max: usize,
    /// Longest value of a parameter.
    pub parameter_bytes_max: usize,
    /// Longest name of a parameter.
    pub parameter_name_bytes_max: usize,
    /// Most parameters.
    pub parameters_max: usize,
    /// Longest cookie, name and value.
    pub cookie_bytes_max: usize,
    /// Most cookies.
    pub cookies_max: usize,
    /// Deepest GraphQL query.
    pub graphql_depth_max: usize,
    /// Most queries of one GraphQL request, and most aliases.
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
            parameter_bytes_max: 64 << 10,
            parameter_name_bytes_max: 256,
            parameters_max: 500,
            cookie_bytes_max: 4_096,
            cookies_max: 60,
            graphql_depth_max: 12,
            graphql_batch_max: 20,
        }
    }
}

/// What checks go by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Policy {
    actions: [Action; Check::ALL.len()],
    /// How much there may be.
    pub limits: Limits,
    /// Methods that are allowed.
    pub methods: Vec<Box<str>>,
    /// Kinds of files that are.
    pub file_types: FileTypes,
    /// Longest values of parameters with these names, instead of the limit for all.
    pub parameter_limits: Vec<(Box<str>, usize)>,
}

/// Methods of applications; CONNECT and TRACE are not among them.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Extensions of what is not for clients: copies, sources, keys, data bases.
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
    /// What becomes of a request in which this check finds something.
    pub fn action(&self, check: Check) -> Action {
        self.actions[check as usize]
    }

    /// Says what becomes of it.
    pub fn set(&mut self, check: Check, action: Action) {
        self.actions[check as usize] = action;
    }
}
