//! Splits a label selector into tokens.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SelectorToken {
    End,
    Comma,
    Open,
    Close,
    Not,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
    In,
    NotIn,
    Identifier,
}

/// All tokens with their texts; the last one is [`SelectorToken::End`].
pub(super) fn tokens(text: &str) -> Vec<(SelectorToken, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        // Go's lexer treats a zero byte as the end.
        let Some(first) = rest.chars().next().filter(|&c| c != '\0') else {
            found.push((SelectorToken::End, String::new()));
            return found;
        };
        let (token, literal, length) = if is_special(first) { special(rest) } else { word(rest) };
        found.push((token, literal));
        rest = rest.get(length..).unwrap_or_default();
    }
}

fn is_special(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

/// The longest operator at the start of the text. No further characters are read, since the rest may be as long
/// as a request.
fn special(text: &str) -> (SelectorToken, String, usize) {
    let found = [2, 1].into_iter().find_map(|length| {
        let literal = text.get(..length)?;
        operator(literal).map(|token| (token, literal.to_owned(), length))
    });
    // Each of the characters is an operator by itself.
    found.unwrap_or((SelectorToken::End, String::new(), text.len()))
}

fn operator(text: &str) -> Option<SelectorToken> {
    Some(match text {
        "," => SelectorToken::Comma,
        "(" => SelectorToken::Open,
        ")" => SelectorToken::Close,
        "!" => SelectorToken::Not,
        "=" => SelectorToken::Equals,
        "==" => SelectorToken::DoubleEquals,
        "!=" => SelectorToken::NotEquals,
        ">" => SelectorToken::Greater,
        "<" => SelectorToken::Less,
        _ => return None,
    })
}

fn word(text: &str) -> (SelectorToken, String, usize) {
    let end = |c| is_special(c) || matches!(c, ' ' | '\t' | '\r' | '\n' | '\0');
    let length = text.find(end).unwrap_or(text.len());
    let literal = text.get(..length).unwrap_or_default();
    let token = match literal {
        "in" => SelectorToken::In,
        "notin" => SelectorToken::NotIn,
        _ => SelectorToken::Identifier,
    };
    (token, literal.to_owned(), length)
}
