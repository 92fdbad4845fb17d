//! SPDX expressions: names, `AND`, `OR`, `WITH`, brackets, and the legacy `/` for `OR`.

use std::{collections::BTreeSet, iter::Peekable, str::SplitWhitespace};

type LicenceWords<'a> = Peekable<SplitWhitespace<'a>>;

/// Whether the allowed licences satisfy an expression.
pub(super) fn is_allowed(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    any_allowed(&mut words, allowed) && words.next().is_none()
}

/// Alternatives. All of them are parsed, even after an allowed one.
fn any_allowed(words: &mut LicenceWords<'_>, allowed: &BTreeSet<&str>) -> bool {
    let mut found = all_allowed(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        found |= all_allowed(words, allowed);
    }
    found
}

fn all_allowed(words: &mut LicenceWords<'_>, allowed: &BTreeSet<&str>) -> bool {
    let mut found = one_allowed(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        found &= one_allowed(words, allowed);
    }
    found
}

fn one_allowed(words: &mut LicenceWords<'_>, allowed: &BTreeSet<&str>) -> bool {
    match words.next() {
        Some("(") => {
            let found = any_allowed(words, allowed);
            words.next() == Some(")") && found
        }
        Some(name) if words.next_if_eq(&"WITH").is_some() => {
            let exception = words.next().unwrap_or_default();
            allowed.contains(format!("{name} WITH {exception}").as_str())
        }
        Some(name) => allowed.contains(name),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expression_is_allowed_where_its_licences_are() {
        let allowed = BTreeSet::from(["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"]);
        for text in
            ["MIT", "GPL-3.0 OR MIT", "GPL-3.0/MIT", "ISC AND (X OR MIT)", "Apache-2.0 WITH LLVM-exception OR X"]
        {
            assert!(is_allowed(text, &allowed), "{text}");
        }
        for text in ["", "X", "MIT AND X", "Apache-2.0", "MIT WITH LLVM-exception", "(MIT", "MIT X", "ISC AND (X OR Y)"]
        {
            assert!(!is_allowed(text, &allowed), "{text}");
        }
    }
}
