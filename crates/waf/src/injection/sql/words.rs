//! SQL keywords and functions, from the manuals of MySQL 8.4, PostgreSQL 17, SQL Server 2022, Oracle 23, SQLite 3 and
//! Db2 12.

use super::token::{Class, Verb};

/// Length of the longest word in the table.
const WORD_BYTES_MAX: usize = 32;

/// Number of hash table slots: a power of two, at most half used.
const SLOTS: usize = 2048;

/// The words, in lower case, by class.
const GROUPS: &[(Class, &[&str])] = &[
    (Class::Logic, &["and", "or", "xor"]),
    (Class::Not, &["not", "binary"]),
    (
        Class::Compare,
        &[
            "like",
            "rlike",
            "regexp",
            "ilike",
            "glob",
            "similar",
            "sounds",
            "match",
            "overlaps",
            "ilike_regex",
        ],
    ),
    (Class::In, &["in"]),
    (Class::Is, &["is", "isnull", "notnull"]),
    (Class::Between, &["between"]),
    (Class::Arithmetic, &["div", "mod", "collate", "escape"]),
    (Class::Union, &["union", "intersect", "except", "minus"]),
    (
        Class::All,
        &[
            "all",
            "distinct",
            "distinctrow",
            "top",
            "high_priority",
            "straight_join",
            "sql_no_cache",
            "sql_cache",
            "sql_calc_found_rows",
        ],
    ),
    (Class::Select, &["select"]),
    (Class::From, &["from"]),
    (Class::Where, &["where", "having"]),
    (Class::Sort, &["group", "order"]),
    (Class::By, &["by"]),
    (Class::Limit, &["limit", "offset"]),
    (Class::Into, &["into"]),
    (Class::File, &["outfile", "dumpfile", "infile"]),
    (Class::Procedure, &["procedure"]),
    (Class::As, &["as"]),
    (Class::Case, &["case"]),
    (Class::When, &["when", "then", "else"]),
    (Class::CaseEnd, &["end"]),
    (Class::Exists, &["exists"]),
    (Class::Values, &["values", "row"]),
    (Class::Set, &["set"]),
    (Class::To, &["to"]),
    (
        Class::Join,
        &[
            "join",
            "inner",
            "outer",
            "cross",
            "natural",
            "on",
            "using",
            "for",
            "fetch",
            "lock",
            "returning",
            "window",
            "with",
            "option",
            "print",
            "use",
            "return",
            "raiserror",
            "kill",
        ],
    ),
    (Class::Direction, &["asc", "desc"]),
    (
        Class::Object,
        &[
            "table",
            "database",
            "schema",
            "view",
            "index",
            "trigger",
            "user",
            "login",
            "role",
            "function",
            "sequence",
            "event",
            "tablespace",
            "column",
            "type",
            "language",
            "extension",
            "assembly",
            "temporary",
            "temp",
        ],
    ),
    (Class::Delay, &["delay", "time"]),
    (Class::Constant, &["null", "true", "false", "unknown"]),
    (Class::Verb(Verb::Insert), &["insert", "merge"]),
    (Class::Verb(Verb::Update), &["update"]),
    (Class::Verb(Verb::Delete), &["delete"]),
    (Class::Verb(Verb::Define), &["create", "alter", "drop", "truncate", "rename"]),
    (Class::Verb(Verb::Execute), &["exec", "execute", "call"]),
    (Class::Verb(Verb::Declare), &["declare"]),
    (Class::Verb(Verb::Wait), &["waitfor"]),
    (Class::Verb(Verb::Grant), &["grant", "revoke"]),
    (Class::Verb(Verb::Load), &["load"]),
    (Class::Verb(Verb::Copy), &["copy"]),
    (Class::Verb(Verb::Backup), &["backup", "restore"]),
    (Class::Verb(Verb::Bulk), &["bulk"]),
    (Class::Verb(Verb::Shutdown), &["shutdown"]),
    (Class::Verb(Verb::Attach), &["attach", "detach"]),
    (Class::Verb(Verb::Prepare), &["prepare"]),
    (Class::Verb(Verb::Handler), &["handler"]),
    (Class::Verb(Verb::Block), &["begin", "do"]),
    (Class::Catalog, CATALOGS),
    (Class::Weapon, WEAPONS),
    (Class::Formula, FORMULAS),
    (Class::Function, FUNCTIONS),
    (Class::Function, MORE_FUNCTIONS),
];

#[rustfmt::skip]
const CATALOGS: &[&str] = &[
    "all_tab_columns", "all_tables", "all_users", "character_sets", "dba_role_privs", "dba_tables",
    "dba_users", "dual", "information_schema", "msysaccessobjects", "msysobjects", "mysql",
    "performance_schema", "pg_catalog", "pg_class", "pg_database", "pg_group", "pg_namespace", "pg_roles",
    "pg_shadow", "pg_stat_activity", "pg_tables", "pg_user", "pg_authid", "schemata", "sqlite_master",
    "sqlite_schema", "sqlite_temp_master", "syscat", "syscolumns", "sysdatabases", "sysibm", "sysibmadm",
    "sysobjects", "sysprocesses", "syslogins", "sysusers", "systables", "user_tab_columns", "user_tables",
    "user_users", "v$database", "v$instance", "v$parameter", "v$session", "v$sql", "v$version", "master",
    "msdb", "tempdb", "sysserverse", "sysservers",
];

#[rustfmt::skip]
const WEAPONS: &[&str] = &[
    "benchmark", "dbms_lock.sleep", "dbms_session.sleep", "extractvalue", "generate_series", "gtid_subset",
    "gtid_subtract", "load_extension", "load_file", "name_const", "openquery", "openrowset", "opendatasource",
    "pg_read_file", "pg_read_binary_file", "pg_ls_dir", "pg_sleep", "pg_sleep_for", "pg_sleep_until",
    "pg_stat_file", "pg_logdir_ls", "lo_import", "lo_export", "lo_get", "dblink", "dblink_connect",
    "dblink_exec", "query_to_xml", "database_to_xml", "table_to_xml", "randomblob", "zeroblob", "sleep",
    "sys_eval", "sys_exec", "updatexml", "get_lock", "release_lock", "master_pos_wait", "source_pos_wait",
    "xmltype", "httpuritype", "ctxsys.drithsx.sn", "ordsys.ord_dicom.getmappingxpath", "fn_trace_gettable",
    "fn_xe_file_target_read_file", "sys_context", "fts3_tokenizer",
];

#[rustfmt::skip]
const FORMULAS: &[&str] = &[
    "abs", "acos", "asin", "atan", "atan2", "avg", "bit_and", "bit_or", "bit_xor", "ceil", "ceiling", "cos",
    "cot", "count", "count_big", "degrees", "exp", "floor", "greatest", "least", "ln", "log", "log10", "log2",
    "max", "min", "pi", "pow", "power", "radians", "rand", "random", "round", "sign", "sin", "sqrt", "square",
    "std", "stddev", "sum", "tan", "total", "trunc", "variance", "date", "day", "year", "month", "hour",
    "minute", "second", "format", "left", "right", "replace", "repeat", "reverse", "length", "lower", "upper",
    "trim", "user", "version", "if", "char", "concat_ws", "space", "position", "locate", "translate",
    "any_value", "extract", "host_name", "current_date", "current_time", "now", "timestamp", "week",
    "quarter", "field", "elt", "interval", "default", "compress", "convert", "str", "stuff", "insert", "uuid",
    "hash", "row_count", "cursor_name", "schema_name",
];

#[rustfmt::skip]
const FUNCTIONS: &[&str] = &[
    "aes_decrypt", "aes_encrypt", "array_agg", "array_to_string", "ascii", "ascii_str", "asciistr", "base64",
    "bin", "bit_count", "bit_length", "btrim", "cast", "char_length", "character_length", "charindex", "chr",
    "coalesce", "coercibility", "collation", "column_name", "concat", "connection_id", "conv", "crc32",
    "ctrl", "curdate", "current_catalog", "current_database", "current_query", "current_role",
    "current_schema", "current_schemas", "current_setting", "current_timestamp", "current_user", "curtime",
    "database", "database_name", "datalength", "date_add", "date_format", "date_sub", "dateadd", "datediff",
    "datename", "datepart", "db_id", "db_name", "decode", "des_decrypt", "des_encrypt", "difference",
    "encode", "encrypt", "export_set", "file_name", "find_in_set", "found_rows", "from_base64", "from_days",
    "from_unixtime", "get_byte", "getdate", "group_concat", "has_dbaccess", "has_table_privilege",
    "hashbytes", "hex", "hextoraw", "host_id", "ident_current", "ifnull", "iif", "inet_aton", "inet_ntoa",
    "inet_server_addr", "inet_server_port", "initcap", "instr", "is_member", "is_srvrolemember", "isnumeric",
    "json_extract", "json_value", "last_insert_id", "last_insert_rowid", "lcase", "len", "listagg",
    "localtime", "localtimestamp", "lpad", "ltrim", "make_set", "makedate", "md5", "mid",
];

#[rustfmt::skip]
const MORE_FUNCTIONS: &[&str] = &[
    "newid", "nullif", "nvl", "nvl2", "object_id", "object_name", "octet_length", "ord", "original_db_name",
    "password", "patindex", "period_add", "pg_backend_pid", "pg_client_encoding", "quote", "quote_ident",
    "quote_literal", "quotename", "rawtohex", "regexp_instr", "regexp_like", "regexp_replace",
    "regexp_substr", "replicate", "rpad", "rtrim", "schema", "scope_identity", "serverproperty",
    "session_user", "sha", "sha1", "sha2", "soundex", "split_part", "sqlite_version", "strcmp", "string_agg",
    "strpos", "substr", "substring", "substring_index", "suser_id", "suser_name", "suser_sname", "sys_guid",
    "sysdate", "system_user", "sysdatetime", "to_base64", "to_char", "to_date", "to_hex", "to_number",
    "to_timestamp", "txid_current", "typeof", "ucase", "uncompress", "unhex", "unicode", "unistr",
    "unix_timestamp", "user_id", "user_name", "utc_date", "utc_timestamp", "uuid_short",
    "validate_password_strength", "weight_string", "wm_concat", "xmlagg", "xmlelement", "xmlforest", "xmlrow",
    "xml2clob", "json_keys", "json_arrayagg", "jsonb_agg", "row_to_json", "isdate", "col_name", "col_length",
    "permissions", "session_id", "userenv", "uid", "readfile", "writefile", "vsize", "dump",
    "utl_raw.cast_to_varchar2",
];

/// Prefixes of functions and procedures that only an attack names in a parameter.
const WEAPON_PREFIXES: &[&[u8]] = &[b"xp_", b"dbms_", b"utl_", b"sp_oa", b"sp_execut", b"sp_make"];

/// Prefixes of the names in catalogues.
const CATALOG_PREFIXES: &[&[u8]] = &[
    b"information_schema.",
    b"sysibm.",
    b"syscat.",
    b"mysql.",
    b"sys.",
    b"pg_catalog.",
    b"master.",
    b"msdb.",
];

/// The hash table of the words in [`GROUPS`]: the number of the group plus one, and the place in the group.
static INDEX: [(u8, u8); SLOTS] = index();

/// The class of a word. Other names are [`Class::Name`].
pub(super) fn classify(word: &[u8]) -> Class {
    let mut folded = [0_u8; WORD_BYTES_MAX];
    let Some(folded) = folded.get_mut(..word.len()) else {
        return with_prefix(word);
    };
    for (place, byte) in folded.iter_mut().zip(word) {
        *place = byte.to_ascii_lowercase();
    }
    let mut slot = hash(folded) as usize % SLOTS;
    loop {
        let Some((entry, class)) = entry(slot) else {
            return with_prefix(folded);
        };
        if entry.as_bytes() == folded {
            return class;
        }
        slot = (slot + 1) % SLOTS;
    }
}

fn entry(slot: usize) -> Option<(&'static str, Class)> {
    let &(group, place) = INDEX.get(slot)?;
    let (class, words) = GROUPS.get(usize::from(group.checked_sub(1)?))?;
    Some((words.get(usize::from(place))?, *class))
}

/// The class of a name that is in no group, by its prefix or its last part.
fn with_prefix(word: &[u8]) -> Class {
    let begins = |prefix: &&[u8]| {
        word.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    let last_part = memchr::memrchr(b'.', word).and_then(|dot| word.get(dot + 1..));
    let last_begins = |prefix: &&[u8]| {
        last_part
            .and_then(|part| part.get(..prefix.len()))
            .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    if WEAPON_PREFIXES.iter().any(begins) || WEAPON_PREFIXES.iter().any(last_begins) {
        Class::Weapon
    } else if CATALOG_PREFIXES.iter().any(begins) {
        Class::Catalog
    } else {
        Class::Name
    }
}

/// FNV-1a.
const fn hash(word: &[u8]) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    let mut at = 0;
    while at < word.len() {
        hash = (hash ^ word[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    hash ^ (hash >> 15)
}

/// Builds the table at compile time. Compilation fails if a word is too long or there are too many words.
const fn index() -> [(u8, u8); SLOTS] {
    let mut slots = [(0, 0); SLOTS];
    let mut used = 0;
    let mut group = 0;
    while group < GROUPS.len() {
        let words = GROUPS[group].1;
        let mut place = 0;
        while place < words.len() {
            let word = words[place].as_bytes();
            assert!(word.len() <= WORD_BYTES_MAX);
            let mut slot = hash(word) as usize % SLOTS;
            while slots[slot].0 != 0 {
                slot = (slot + 1) % SLOTS;
            }
            slots[slot] = (group as u8 + 1, place as u8);
            used += 1;
            place += 1;
        }
        assert!(words.len() < 256);
        group += 1;
    }
    assert!(GROUPS.len() < 255 && used < SLOTS / 2);
    slots
}
