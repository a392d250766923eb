//! `waf.checks`: what is looked at without rules.

use crate::decode::Spanned;
use crate::scalar::{GIB, KIB, MIB, Size, Text, Whole};
use crate::shapes::{AnyText, CheckActions, FilePath};

/// Longest path or query that can be given as a limit.
const TARGET_BYTES_MAX: u64 = MIB;
/// Most of something that can be given as a limit.
const COUNT_MAX: u64 = 100_000;
/// Largest limit on a body.
const BODY_BYTES_MAX: u64 = 64 * GIB;

section! {
    /// What is looked at without rules: how targets are encoded, what HTTP asks of heads, sizes, methods, kinds of files, cookies, the form of bodies. [waf.md](waf.md#checks) has a table of all checks.
    Checks at "virtual_servers.NAME.waf.checks" {
        /// What becomes of a request in which a check finds something, by the check's name: `off`, `alarm` (it is logged and counted) or `block`. Those that are not named do what the table says.
        optional actions: CheckActions;
        /// Methods that may come (`method`). Default: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS.
        optional methods: Vec<Spanned<Text>>;
        /// Extensions of paths that may not be asked for (`file_type`), without the dot. Default: those of copies, sources, keys and data bases.
        optional extensions_refused: Vec<Spanned<Text>>;
        /// The only ones that may; an empty one stands for paths without an extension. In place of `extensions_refused`.
        optional extensions: Vec<Spanned<FileType>>;
        /// Times that a target may be encoded (`multiple_decoding`).
        default decodings_max: Whole<u8, 1, 5> = Whole(2);
        /// Longest path (`url_length`).
        default path_size_max: Size<1, TARGET_BYTES_MAX> = Size(2 * KIB);
        /// Longest query (`query_length`).
        default query_size_max: Size<0, TARGET_BYTES_MAX> = Size(4 * KIB);
        /// Longest body, as it comes (`body_length`).
        default body_size_max: Size<0, BODY_BYTES_MAX> = Size(64 * MIB);
        /// Longest request, head and body (`request_length`).
        default request_size_max: Size<1, BODY_BYTES_MAX> = Size(64 * MIB);
        /// Longest header, name and value (`header_length`).
        default header_size_max: Size<1, MIB> = Size(8 * KIB);
        /// Most headers (`header_count`).
        default headers_max: Whole<u32, 1, COUNT_MAX> = Whole(100);
        /// Longest value of a parameter (`parameter_length`).
        default parameter_size_max: Size<0, { 64 * MIB }> = Size(64 * KIB);
        /// Longest name of a parameter (`parameter_name_length`).
        default parameter_name_size_max: Size<1, MIB> = Size(256);
        /// Most parameters (`parameter_count`).
        default parameters_max: Whole<u32, 0, COUNT_MAX> = Whole(500);
        /// Parameters with limits of their own on the length of their values.
        optional parameters: Vec<Spanned<ParameterLimit>>;
        /// Longest cookie, name and value (`cookie_length`).
        default cookie_size_max: Size<1, MIB> = Size(4 * KIB);
        /// Most cookies (`cookie_count`).
        default cookies_max: Whole<u32, 0, COUNT_MAX> = Whole(60);
        /// Deepest nesting of a GraphQL query (`graphql_depth`).
        default graphql_depth_max: Whole<u32, 1, COUNT_MAX> = Whole(12);
        /// Most queries of one GraphQL request, and most aliases (`graphql_batch`).
        default graphql_batch_max: Whole<u32, 1, COUNT_MAX> = Whole(20);
        /// A description of the application, OpenAPI 3 as JSON: what it does not declare is found (`undeclared_path`, `parameter_type` and their like). Default: none.
        optional openapi: FilePath;
    }
    later []
}

section! {
    /// A kind of file that may be asked for.
    FileType at "virtual_servers.NAME.waf.checks.extensions[]" {
        /// The extension, without the dot; empty for paths without one.
        required name: AnyText;
        /// Longest path. Default: that of all.
        optional path_size_max: Size<1, TARGET_BYTES_MAX>;
        /// Longest query. Default: that of all.
        optional query_size_max: Size<0, TARGET_BYTES_MAX>;
        /// Longest body. Default: that of all.
        optional body_size_max: Size<0, BODY_BYTES_MAX>;
    }
    later []
}

section! {
    /// The longest value of a parameter.
    ParameterLimit at "virtual_servers.NAME.waf.checks.parameters[]" {
        /// Its name.
        required name: Text;
        /// The longest value.
        required size_max: Size<0, { 64 * MIB }>;
    }
    later []
}
