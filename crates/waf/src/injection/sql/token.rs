//! Tokens of SQL and their classes.

/// The class of a token in the grammar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    /// A number in any notation.
    Number,
    /// A string literal.
    Text,
    /// `@name`, `@@name`.
    Variable,
    /// NULL, TRUE and the like.
    Constant,
    /// A name, quoted or not.
    Name,
    /// A table or schema with metadata of the database.
    Catalog,
    /// A mathematical or aggregate function, which alone does not indicate an attack.
    Formula,
    /// A function for text, conversion, or facts about the session.
    Function,
    /// A function that waits, reads files, reaches the network, or puts data into errors.
    Weapon,
    /// AND, OR, XOR, `&&`, `||`.
    Logic,
    /// NOT, `!`.
    Not,
    /// `=`, `<`, LIKE, ...
    Compare,
    /// IN.
    In,
    /// IS.
    Is,
    /// BETWEEN.
    Between,
    /// `+`, `-`: operators that are also signs.
    Sign,
    /// `*`.
    Star,
    /// `/`, `%`, `&`, DIV, ...
    Arithmetic,
    /// `|`, `^`, `~`, and `||` if it joins texts: rare in prose.
    Bitwise,
    /// `:=`.
    Assign,
    /// `::`.
    Cast,
    /// UNION, INTERSECT, EXCEPT, MINUS.
    Union,
    /// ALL, DISTINCT, TOP: words between SELECT and its operands.
    All,
    /// SELECT.
    Select,
    /// FROM.
    From,
    /// WHERE, HAVING.
    Where,
    /// GROUP, ORDER.
    Sort,
    /// BY.
    By,
    /// LIMIT, OFFSET.
    Limit,
    /// INTO.
    Into,
    /// OUTFILE, DUMPFILE, INFILE.
    File,
    /// PROCEDURE.
    Procedure,
    /// AS.
    As,
    /// CASE.
    Case,
    /// WHEN, THEN, ELSE.
    When,
    /// END.
    CaseEnd,
    /// EXISTS.
    Exists,
    /// VALUES, ROW.
    Values,
    /// SET.
    Set,
    /// TO.
    To,
    /// JOIN, ON, FOR, FETCH and other words that continue a query.
    Join,
    /// ASC, DESC.
    Direction,
    /// TABLE, DATABASE, ...: objects of statements.
    Object,
    /// DELAY, TIME, after WAITFOR.
    Delay,
    /// The first word of a statement other than SELECT.
    Verb(Verb),
    /// `(`, `{`.
    Open,
    /// `)`, `}`.
    Close,
    /// `,`.
    Comma,
    /// `;`.
    Semicolon,
    /// A `.` that is not part of a name.
    Dot,
    /// A comment that hides the rest.
    Comment,
    /// A byte that does not occur in SQL.
    Other,
    /// The end of the input.
    End,
}

/// The first words of statements, grouped by the words required after them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verb {
    /// INSERT, REPLACE, MERGE.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
    /// CREATE, ALTER, DROP, TRUNCATE, RENAME.
    Define,
    /// EXEC, EXECUTE, CALL.
    Execute,
    /// DECLARE.
    Declare,
    /// WAITFOR.
    Wait,
    /// GRANT, REVOKE.
    Grant,
    /// LOAD.
    Load,
    /// COPY.
    Copy,
    /// BACKUP, RESTORE.
    Backup,
    /// BULK.
    Bulk,
    /// SHUTDOWN.
    Shutdown,
    /// ATTACH.
    Attach,
    /// PREPARE.
    Prepare,
    /// HANDLER.
    Handler,
    /// BEGIN, DO.
    Block,
}

/// One token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Token {
    pub(super) class: Class,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Whether blanks or comments precede the token.
    pub(super) gap: bool,
    /// The quote of an unclosed text, otherwise 0.
    pub(super) open_quote: u8,
}

impl Class {
    /// The character for a fingerprint.
    pub(super) fn letter(self) -> u8 {
        match self {
            Class::Number | Class::Constant => b'1',
            Class::Text => b's',
            Class::Variable => b'v',
            Class::Name | Class::Catalog => b'n',
            Class::Formula | Class::Function | Class::Weapon => b'f',
            Class::Logic => b'&',
            Class::Not => b'!',
            Class::Compare | Class::In | Class::Is | Class::Between => b'o',
            Class::Sign | Class::Star | Class::Arithmetic | Class::Bitwise => b'o',
            Class::Assign | Class::Cast => b'o',
            Class::Union => b'U',
            Class::Select | Class::Verb(_) => b'E',
            Class::Where | Class::Sort | Class::Limit | Class::Into | Class::Procedure => b'B',
            Class::Open => b'(',
            Class::Close => b')',
            Class::Comma => b',',
            Class::Semicolon => b';',
            Class::Dot => b'.',
            Class::Comment => b'c',
            Class::Other | Class::End => b'?',
            _ => b'k',
        }
    }

    /// Whether a token of this class may be the name of a column, a table or an alias.
    pub(super) fn is_name(self) -> bool {
        matches!(
            self,
            Class::Name | Class::Catalog | Class::Formula | Class::Function | Class::Weapon
        ) || matches!(self, Class::Object | Class::Delay | Class::Values)
    }

    /// Whether a token of this class may be the name of a called function.
    pub(super) fn is_function(self) -> bool {
        matches!(self, Class::Formula | Class::Function | Class::Weapon)
    }

    /// Whether a token of this class may follow an operand.
    pub(super) fn may_follow_operand(self) -> bool {
        !matches!(
            self,
            Class::Number
                | Class::Variable
                | Class::Constant
                | Class::Name
                | Class::Catalog
                | Class::Formula
                | Class::Function
                | Class::Weapon
                | Class::Object
                | Class::Delay
                | Class::Other
                | Class::By
                | Class::To
        )
    }
}
