//! The parser: recursive descent from tokens to a tree (CEL language definition, "Syntax").
//!
//! Not supported: maps, messages, macros, `null`, fractions.

use std::ops::Range;

use super::ast::{Kind, Node, Operator, Relation, Word};
use super::foreign;
use super::lexer::{Lexer, Token, TokenKind, too_large};
use super::{ExpressionError, NESTING_MAX, NODES_MAX, TEXT_LENGTH_BYTES_MAX};

/// Parses a text that is one expression.
pub(super) fn parse(text: &str) -> Result<Node, ExpressionError> {
    check_length(text)?;
    let mut parser = Parser::new(text, 0)?;
    let node = parser.expression()?;
    match parser.token.kind {
        TokenKind::End => Ok(node),
        _ => Err(parser.unexpected("an operator")),
    }
}

/// Parses the expression that starts at byte `start` and ends before a `}`. Returns the position after the brace.
pub(super) fn parse_braced(text: &str, start: usize) -> Result<(Node, usize), ExpressionError> {
    let mut parser = Parser::new(text, start)?;
    let node = parser.expression()?;
    match parser.token.kind {
        TokenKind::Symbol("}") => Ok((node, parser.token.range.end)),
        _ => Err(parser.unexpected("`}`")),
    }
}

/// Rejects texts of unreasonable length.
pub(crate) fn check_length(text: &str) -> Result<(), ExpressionError> {
    if text.len() > TEXT_LENGTH_BYTES_MAX {
        let message = format!("longer than {TEXT_LENGTH_BYTES_MAX} bytes");
        return Err(
            ExpressionError::new(0..text.len(), message).help("long lists belong into a data set")
        );
    }
    Ok(())
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    /// The current token.
    token: Token<'t>,
    /// The number of enclosing expressions, brackets included.
    nesting: usize,
    nodes: usize,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, start: usize) -> Result<Self, ExpressionError> {
        let mut lexer = Lexer::new(text, start);
        let token = lexer.next()?;
        Ok(Self { lexer, token, nesting: 0, nodes: 0 })
    }

    /// Returns the current token and advances.
    fn take(&mut self) -> Result<Token<'t>, ExpressionError> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.token.kind, TokenKind::Symbol(found) if found == symbol)
    }

    /// Skips the symbol if it is next. Returns whether it was next.
    fn passes(&mut self, symbol: &str) -> Result<bool, ExpressionError> {
        let found = self.is(symbol);
        if found {
            self.take()?;
        }
        Ok(found)
    }

    /// Skips the symbol, which must be next. Returns the position after it.
    fn expect(&mut self, symbol: &str) -> Result<usize, ExpressionError> {
        if self.is(symbol) {
            return Ok(self.take()?.range.end);
        }
        Err(self.unexpected(&format!("`{symbol}`")))
    }

    fn unexpected(&self, wanted: &str) -> ExpressionError {
        let found = match &self.token.kind {
            TokenKind::Name(name) => format!("`{name}`"),
            TokenKind::Text(_) => "text".into(),
            TokenKind::Integer(_) => "a number".into(),
            TokenKind::Symbol(symbol) => format!("`{symbol}`"),
            TokenKind::End => "the end".into(),
        };
        let error = ExpressionError::new(
            self.token.range.clone(),
            format!("{wanted} was expected, not {found}"),
        );
        match self.token.kind {
            TokenKind::Name(name) => foreign::of_operator(error, name),
            TokenKind::Symbol("/") => error.help("write text in quotes: `'/…'`"),
            _ => error,
        }
    }

    fn node(&mut self, kind: Kind, range: Range<usize>) -> Result<Node, ExpressionError> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            let message = format!("more than {NODES_MAX} parts in one expression");
            return Err(
                ExpressionError::new(range, message).help("long lists belong into a data set")
            );
        }
        let depth = kind.children_depth() + 1;
        if depth > NESTING_MAX { Err(too_deep(range)) } else { Ok(Node { kind, range, depth }) }
    }

    fn join(
        &mut self,
        mut nodes: Vec<Node>,
        kind: impl FnOnce(Vec<Node>) -> Kind,
    ) -> Result<Node, ExpressionError> {
        match nodes.pop() {
            Some(only) if nodes.is_empty() => Ok(only),
            Some(last) => {
                let range = nodes[0].range.start..last.range.end;
                nodes.push(last);
                self.node(kind(nodes), range)
            }
            None => Err(self.unexpected("a value")),
        }
    }

    /// `any [? any : expression]`
    fn expression(&mut self) -> Result<Node, ExpressionError> {
        self.nesting += 1;
        if self.nesting > NESTING_MAX {
            return Err(too_deep(self.token.range.clone()));
        }
        let condition = self.any()?;
        let node = if self.passes("?")? {
            let yes = self.any()?;
            self.expect(":")?;
            let no = self.expression()?;
            let range = condition.range.start..no.range.end;
            self.node(Kind::Choice(Box::new([condition, yes, no])), range)?
        } else {
            condition
        };
        self.nesting -= 1;
        Ok(node)
    }

    /// `all {|| all}`
    fn any(&mut self) -> Result<Node, ExpressionError> {
        let mut nodes = vec![self.all()?];
        while self.passes("||")? {
            nodes.push(self.all()?);
        }
        self.join(nodes, Kind::Any)
    }

    /// `relation {&& relation}`
    fn all(&mut self) -> Result<Node, ExpressionError> {
        let mut nodes = vec![self.relation()?];
        while self.passes("&&")? {
            nodes.push(self.relation()?);
        }
        self.join(nodes, Kind::All)
    }

    /// `sum {operator sum}`, from left to right
    fn relation(&mut self) -> Result<Node, ExpressionError> {
        let mut left = sum(self)?;
        while let Some(relation) = self.relation_operator() {
            self.take()?;
            let right = sum(self)?;
            let range = left.range.start..right.range.end;
            left = self.node(Kind::Compare { relation, sides: Box::new([left, right]) }, range)?;
        }
        Ok(left)
    }

    fn relation_operator(&self) -> Option<Relation> {
        Some(match self.token.kind {
            TokenKind::Symbol("==") => Relation::Equal,
            TokenKind::Symbol("!=") => Relation::NotEqual,
            TokenKind::Symbol("<") => Relation::Less,
            TokenKind::Symbol("<=") => Relation::LessOrEqual,
            TokenKind::Symbol(">") => Relation::Greater,
            TokenKind::Symbol(">=") => Relation::GreaterOrEqual,
            TokenKind::Name("in") => Relation::In,
            _ => return None,
        })
    }

    /// `{!} member` or `{-} member`
    fn unary(&mut self) -> Result<Node, ExpressionError> {
        let mut negations = Vec::new();
        while self.is("!") {
            negations.push(self.take()?.range.start);
            if negations.len() > NESTING_MAX {
                return Err(too_deep(self.token.range.clone()));
            }
        }
        let mut node = if self.is("-") { self.negative()? } else { self.member()? };
        for start in negations.into_iter().rev() {
            let range = start..node.range.end;
            node = self.node(Kind::Not(Box::new(node)), range)?;
        }
        Ok(node)
    }

    /// A negated member. Before a number, the sign belongs to the number, so that the smallest integer can be written.
    fn negative(&mut self) -> Result<Node, ExpressionError> {
        let mut starts = vec![self.take()?.range.start];
        while self.is("-") {
            starts.push(self.take()?.range.start);
            if starts.len() > NESTING_MAX {
                return Err(too_deep(self.token.range.clone()));
            }
        }
        let mut node = match self.token.kind {
            TokenKind::Integer(magnitude) => {
                let end = self.take()?.range.end;
                let range = starts.pop().unwrap_or(end)..end;
                match 0_i64.checked_sub_unsigned(magnitude) {
                    Some(value) => self.node(Kind::Integer(value), range)?,
                    None => return Err(too_large(range)),
                }
            }
            _ => self.member()?,
        };
        for start in starts.into_iter().rev() {
            let range = start..node.range.end;
            node = self.node(Kind::Negative(Box::new(node)), range)?;
        }
        Ok(node)
    }

    /// `primary {.name | .name(arguments) | [key]}`
    fn member(&mut self) -> Result<Node, ExpressionError> {
        let mut node = self.primary()?;
        loop {
            let start = node.range.start;
            if self.passes(".")? {
                let name = self.word()?;
                if self.passes("(")? {
                    let (arguments, end) = self.list(")")?;
                    let of = Some(Box::new(node));
                    node = self.node(Kind::Call { of, name, arguments }, start..end)?;
                } else {
                    let range = start..name.range.end;
                    node = self.node(Kind::Field { of: Box::new(node), name }, range)?;
                }
            } else if self.passes("[")? {
                let key = Box::new(self.expression()?);
                let end = self.expect("]")?;
                node = self.node(Kind::Index { of: Box::new(node), key }, start..end)?;
            } else {
                return Ok(node);
            }
        }
    }

    fn word(&mut self) -> Result<Word, ExpressionError> {
        match self.token.kind {
            TokenKind::Name(name) => {
                let text = name.to_owned();
                Ok(Word { text, range: self.take()?.range })
            }
            _ => Err(self.unexpected("a name")),
        }
    }

    /// A literal, a name, a call, a list, or an expression in parentheses.
    fn primary(&mut self) -> Result<Node, ExpressionError> {
        let range = self.token.range.clone();
        let kind = match &mut self.token.kind {
            TokenKind::Text(text) => Kind::Text(std::mem::take(text)),
            TokenKind::Integer(magnitude) => match i64::try_from(*magnitude) {
                Ok(value) => Kind::Integer(value),
                Err(_) => return Err(too_large(range)),
            },
            TokenKind::Name("true") => Kind::Boolean(true),
            TokenKind::Name("false") => Kind::Boolean(false),
            TokenKind::Name("in" | "and" | "or" | "not") => return Err(self.unexpected("a value")),
            TokenKind::Name(_) => return self.name_or_call(),
            TokenKind::Symbol("(") => return self.parenthesised(),
            TokenKind::Symbol("[") => {
                self.take()?;
                let (nodes, end) = self.list("]")?;
                return self.node(Kind::List(nodes), range.start..end);
            }
            _ => return Err(self.unexpected("a value")),
        };
        self.take()?;
        self.node(kind, range)
    }

    fn name_or_call(&mut self) -> Result<Node, ExpressionError> {
        let name = self.word()?;
        let range = name.range.clone();
        if self.passes("(")? {
            let (arguments, end) = self.list(")")?;
            return self.node(Kind::Call { of: None, name, arguments }, range.start..end);
        }
        self.node(Kind::Name(name.text), range)
    }

    /// The range of a parenthesised expression includes the parentheses.
    fn parenthesised(&mut self) -> Result<Node, ExpressionError> {
        let start = self.take()?.range.start;
        let node = self.expression()?;
        if self.is(",") {
            return Err(self.unexpected("`)`").help("a list stands in brackets: `in ['a', 'b']`"));
        }
        let end = self.expect(")")?;
        Ok(Node { range: start..end, ..node })
    }

    /// `[expression {, expression} [,]]` and the closing symbol. Returns the position after it.
    fn list(&mut self, closing: &str) -> Result<(Vec<Node>, usize), ExpressionError> {
        let mut nodes = Vec::new();
        while !self.is(closing) {
            nodes.push(self.expression()?);
            if !self.passes(",")? {
                break;
            }
        }
        let end = self.expect(closing)?;
        Ok((nodes, end))
    }
}

/// `product {operator product}`
fn sum(parser: &mut Parser<'_>) -> Result<Node, ExpressionError> {
    chain(parser, &[Operator::Add, Operator::Subtract], product)
}

/// `unary {operator unary}`
fn product(parser: &mut Parser<'_>) -> Result<Node, ExpressionError> {
    let operators = [Operator::Multiply, Operator::Divide, Operator::Remainder];
    chain(parser, &operators, Parser::unary)
}

/// Operands joined by operators, from left to right.
fn chain<'t>(
    parser: &mut Parser<'t>,
    operators: &[Operator],
    operand: fn(&mut Parser<'t>) -> Result<Node, ExpressionError>,
) -> Result<Node, ExpressionError> {
    let mut left = operand(parser)?;
    while let Some(&operator) = operators.iter().find(|it| parser.is(it.symbol())) {
        parser.take()?;
        let right = operand(parser)?;
        let range = left.range.start..right.range.end;
        let sides = Box::new([left, right]);
        left = parser.node(Kind::Arithmetic { operator, sides }, range)?;
    }
    Ok(left)
}

fn too_deep(range: Range<usize>) -> ExpressionError {
    ExpressionError::new(range, format!("nested deeper than {NESTING_MAX} levels"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree, fully parenthesised.
    fn show(node: &Node) -> String {
        let join = |nodes: &[Node], between: &str| {
            nodes.iter().map(show).collect::<Vec<_>>().join(between)
        };
        match &node.kind {
            Kind::Text(text) => format!("{text:?}"),
            Kind::Integer(value) => value.to_string(),
            Kind::Boolean(value) => value.to_string(),
            Kind::Name(name) => name.clone(),
            Kind::Field { of, name } => format!("{}.{}", show(of), name.text),
            Kind::Index { of, key } => format!("{}[{}]", show(of), show(key)),
            Kind::Call { of: Some(of), name, arguments } => {
                format!("{}.{}({})", show(of), name.text, join(arguments, ", "))
            }
            Kind::Call { of: None, name, arguments } => {
                format!("{}({})", name.text, join(arguments, ", "))
            }
            Kind::List(nodes) => format!("[{}]", join(nodes, ", ")),
            Kind::Not(of) => format!("!{}", show(of)),
            Kind::Negative(of) => format!("-{}", show(of)),
            Kind::Arithmetic { operator, sides } => {
                format!("({} {} {})", show(&sides[0]), operator.symbol(), show(&sides[1]))
            }
            Kind::Compare { relation, sides } => {
                format!("({} {} {})", show(&sides[0]), relation.symbol(), show(&sides[1]))
            }
            Kind::All(nodes) => format!("({})", join(nodes, " && ")),
            Kind::Any(nodes) => format!("({})", join(nodes, " || ")),
            Kind::Choice(parts) => {
                format!("({} ? {} : {})", show(&parts[0]), show(&parts[1]), show(&parts[2]))
            }
        }
    }

    #[test]
    fn precedence_and_association() {
        for (text, expected) in [
            ("a || b && c || d", "(a || (b && c) || d)"),
            ("(a || b) && c", "((a || b) && c)"),
            ("!a == b && c", "((!a == b) && c)"),
            ("!!a.b['c'].d(1, 'x',)", "!!a.b[\"c\"].d(1, \"x\")"),
            ("a ? b : c ? d : e", "(a ? b : (c ? d : e))"),
            ("(a ? b : c) ? d : e", "((a ? b : c) ? d : e)"),
            ("a || b ? c && d : e == f", "((a || b) ? (c && d) : (e == f))"),
            ("a == b == c", "((a == b) == c)"),
            ("a in ['x', 'y'] != false", "((a in [\"x\", \"y\"]) != false)"),
            ("-9223372036854775808 < - 1", "(-9223372036854775808 < -1)"),
            ("a + b * c - d", "((a + (b * c)) - d)"),
            ("a / b % c * -d.e", "(((a / b) % c) * -d.e)"),
            ("(a + b) * c < d && e", "((((a + b) * c) < d) && e)"),
            ("a -1", "(a - 1)"),
            ("a - -1", "(a - -1)"),
            ("- -1 + --a", "(--1 + --a)"),
            ("a + 1 in [2]", "((a + 1) in [2])"),
            ("a / b // c / d", "(a / b)"),
            (
                "cidr('10.0.0.0/8').containsIP(client.ip)",
                "cidr(\"10.0.0.0/8\").containsIP(client.ip)",
            ),
            ("f()", "f()"),
            ("[]", "[]"),
        ] {
            assert_eq!(parse(text).map(|node| show(&node)), Ok(expected.into()), "{text}");
        }
    }

    #[test]
    fn errors_have_places() {
        for (text, range, message) in [
            ("", 0..0, "a value was expected, not the end"),
            ("a b", 2..3, "an operator was expected, not `b`"),
            ("a and b", 2..5, "an operator was expected, not `and`; did you mean `&&`?"),
            ("a &&", 4..4, "a value was expected, not the end"),
            ("(a", 2..2, "`)` was expected, not the end"),
            ("a ? b", 5..5, "`:` was expected, not the end"),
            ("a[1", 3..3, "`]` was expected, not the end"),
            ("a.'b'", 2..5, "a name was expected, not text"),
            ("f(,)", 2..3, "a value was expected, not `,`"),
            ("not a", 0..3, "a value was expected, not `not`; did you mean `!`?"),
            ("1 +", 3..3, "a value was expected, not the end"),
            ("+a", 0..1, "a value was expected, not `+`"),
            ("f(/a)", 2..3, "a value was expected, not `/`; write text in quotes: `'/…'`"),
            ("-!a", 1..2, "a value was expected, not `!`"),
            ("--9223372036854775809", 1..21, "the number does not fit into 64 bits"),
            ("9223372036854775808", 0..19, "the number does not fit into 64 bits"),
            ("-9223372036854775809", 0..20, "the number does not fit into 64 bits"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!((error.range.clone(), error.to_string()), (range, message.into()), "{text}");
        }
    }

    #[test]
    fn ranges_cover_what_was_written() {
        let text = " request.path == ( 'a' ) ";
        let node = parse(text).unwrap();
        let Kind::Compare { sides, .. } = &node.kind else { panic!() };
        assert_eq!(&text[node.range.clone()], "request.path == ( 'a' )");
        assert_eq!(&text[sides[0].range.clone()], "request.path");
        assert_eq!(&text[sides[1].range.clone()], "( 'a' )");
    }

    #[test]
    fn braces_end_an_expression_in_a_template() {
        let text = "x ${a['}']} y";
        let (node, end) = parse_braced(text, 4).unwrap();
        assert_eq!((show(&node).as_str(), &text[end..]), ("a[\"}\"]", " y"));
        assert_eq!(parse_braced("${a", 2).unwrap_err().message, "`}` was expected, not the end");
    }

    #[test]
    fn size_is_bounded() {
        let deep = |open: &str, close: &str, levels: usize| {
            format!("{}a{}", open.repeat(levels), close.repeat(levels))
        };
        for (open, close) in [
            ("(", ")"),
            ("!", ""),
            ("-", ""),
            ("1-", ""),
            ("1*", ""),
            ("[", "]"),
            ("f(", ")"),
            ("a[", "]"),
            ("", ".a"),
            ("b?c:", ""),
        ] {
            assert!(parse(&deep(open, close, NESTING_MAX - 2)).is_ok(), "{open}");
            for levels in [NESTING_MAX + 1, 10_000] {
                let error = parse(&deep(open, close, levels)).unwrap_err();
                assert!(error.message.starts_with("nested deeper"), "{open}: {error}");
            }
        }
        // Neither brackets nor members alone are too deep here.
        let half = NESTING_MAX / 2 + 1;
        let mixed = format!("{}a{}", "(".repeat(half), format!("{})", ".a".repeat(3)).repeat(half));
        assert!(parse(&mixed).unwrap_err().message.starts_with("nested deeper"));

        let list = |length: usize| format!("[{}]", "1,".repeat(length));
        assert!(parse(&list(NODES_MAX - 1)).is_ok());
        assert!(parse(&list(NODES_MAX)).unwrap_err().message.starts_with("more than"));
        let error = parse(&" ".repeat(TEXT_LENGTH_BYTES_MAX + 1)).unwrap_err();
        assert!(error.message.starts_with("longer than"), "{error}");
    }
}
