//! `waf.checks`: checks that need no rules.

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
    /// Checks that need no rules: encoding of request targets (path and query), HTTP compliance of heads, sizes, methods, file types, cookies, and the syntax of bodies. [waf.md](waf.md#checks) has a table of all checks.
    Checks at "virtual_servers.NAME.waf.checks" {
        /// Actions by the name of a check. Checks not listed here have their default action (see the table in waf.md).
        optional actions: CheckActions;
        /// Allowed methods (`method`). Default: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS.
        optional methods: Vec<Spanned<Text>>;
        /// Forbidden extensions of paths (`file_type`), without the dot. Default: extensions of backup copies, source code, keys and databases.
        optional extensions_refused: Vec<Spanned<Text>>;
        /// The only allowed extensions, instead of `extensions_refused`; an empty `name` stands for paths without an extension. Default: all, except `extensions_refused`.
        optional extensions: Vec<Spanned<FileType>>;
        /// Maximum number of percent-encoding layers in a request target (`multiple_decoding`).
        default decodings_max: Whole<u8, 1, 5> = Whole(2);
        /// Maximum length of the path (`url_length`).
        default path_size_max: Size<1, TARGET_BYTES_MAX> = Size(2 * KIB);
        /// Maximum length of the query (`query_length`).
        default query_size_max: Size<0, TARGET_BYTES_MAX> = Size(4 * KIB);
        /// Maximum length of a body, as received (`body_length`). A body above `body_size_max` of `waf` is not inspected; `unjudged` then applies.
        default body_size_max: Size<0, BODY_BYTES_MAX> = Size(64 * MIB);
        /// Maximum length of a request, head and body (`request_length`).
        default request_size_max: Size<1, BODY_BYTES_MAX> = Size(64 * MIB);
        /// Maximum length of a header, name and value (`header_length`).
        default header_size_max: Size<1, MIB> = Size(8 * KIB);
        /// Maximum number of headers (`header_count`).
        default headers_max: Whole<u32, 1, COUNT_MAX> = Whole(100);
        /// Maximum length of a parameter's value (`parameter_length`).
        default parameter_size_max: Size<0, { 64 * MIB }> = Size(MIB);
        /// Maximum length of a parameter's name (`parameter_name_length`).
        default parameter_name_size_max: Size<1, MIB> = Size(256);
        /// Maximum number of parameters (`parameter_count`). Of an array in JSON, only the first element counts.
        default parameters_max: Whole<u32, 0, COUNT_MAX> = Whole(1_000);
        /// Parameters with their own limits on the length of values. Default: none.
        optional parameters: Vec<Spanned<ParameterLimit>>;
        /// Maximum length of a cookie, name and value (`cookie_length`).
        default cookie_size_max: Size<1, MIB> = Size(4 * KIB);
        /// Maximum number of cookies (`cookie_count`).
        default cookies_max: Whole<u32, 0, COUNT_MAX> = Whole(60);
        /// Maximum nesting depth of a GraphQL query (`graphql_depth`).
        default graphql_depth_max: Whole<u32, 1, COUNT_MAX> = Whole(12);
        /// Maximum number of queries in a GraphQL request, and of aliases (`graphql_batch`).
        default graphql_batch_max: Whole<u32, 1, COUNT_MAX> = Whole(20);
        /// An OpenAPI 3 description of the application, as JSON. Requests that the description does not declare are findings (`undeclared_path`, `parameter_type` and similar). Default: none.
        optional openapi: FilePath;
    }
    later []
}

section! {
    /// An allowed file type.
    FileType at "virtual_servers.NAME.waf.checks.extensions[]" {
        /// The extension, without the dot; empty for paths without an extension.
        required name: AnyText;
        /// Maximum length of the path. Default: the general limit.
        optional path_size_max: Size<1, TARGET_BYTES_MAX>;
        /// Maximum length of the query. Default: the general limit.
        optional query_size_max: Size<0, TARGET_BYTES_MAX>;
        /// Maximum length of the body. Default: the general limit.
        optional body_size_max: Size<0, BODY_BYTES_MAX>;
    }
    later []
}

section! {
    /// A limit on the value of one parameter.
    ParameterLimit at "virtual_servers.NAME.waf.checks.parameters[]" {
        /// The name of the parameter.
        required name: Text;
        /// Maximum length of the value.
        required size_max: Size<0, { 64 * MIB }>;
    }
    later []
}
