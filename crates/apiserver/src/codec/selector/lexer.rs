//! A label selector's text in tokens.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
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

/// All tokens with their texts; the last one is [`Token::End`].
pub(super) fn tokens(text: &str) -> Vec<(Token, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        // Go's reader takes a zero byte for the end.
        let Some(first) = rest.chars().next().filter(|&c| c != '\0') else {
            found.push((Token::End, String::new()));
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

/// The longest operator that the text begins with. It looks no further than that: what follows may be as long as a request.
fn special(text: &str) -> (Token, String, usize) {
    let found = [2, 1].into_iter().find_map(|length| {
        let literal = text.get(..length)?;
        operator(literal).map(|token| (token, literal.to_owned(), length))
    });
    // Each of the characters is an operator by itself.
    found.unwrap_or((Token::End, String::new(), text.len()))
}

fn operator(text: &str) -> Option<Token> {
    Some(match text {
        "," => Token::Comma,
        "(" => Token::Open,
        ")" => Token::Close,
        "!" => Token::Not,
        "=" => Token::Equals,
        "==" => Token::DoubleEquals,
        "!=" => Token::NotEquals,
        ">" => Token::Greater,
        "<" => Token::Less,
        _ => return None,
    })
}

fn word(text: &str) -> (Token, String, usize) {
    let end = |c| is_special(c) || matches!(c, ' ' | '\t' | '\r' | '\n' | '\0');
    let length = text.find(end).unwrap_or(text.len());
    let literal = text.get(..length).unwrap_or_default();
    let token = match literal {
        "in" => Token::In,
        "notin" => Token::NotIn,
        _ => Token::Identifier,
    };
    (token, literal.to_owned(), length)
}
