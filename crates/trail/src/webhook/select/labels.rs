//! Selectors as kubectl writes them: `app=shop,tier in (web, api),!legacy`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

/// Why a text is no selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part:?} is no requirement on labels: KEY=VALUE, KEY!=VALUE, KEY in (A, B), KEY notin (A, B), KEY, or !KEY")]
pub struct BadSelector {
    part: String,
}

/// Reads a selector. An empty text selects everything.
pub fn parse(text: &str) -> Result<LabelSelector, BadSelector> {
    if text.trim().is_empty() {
        return Ok(LabelSelector::default());
    }
    let requirements = split(text).into_iter().map(requirement).collect::<Result<Vec<_>, _>>()?;
    Ok(LabelSelector { match_expressions: Some(requirements), match_labels: None })
}

/// The parts between commas that are not in parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let at_comma = |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    };
    text.split(at_comma).map(str::trim).collect()
}

fn requirement(part: &str) -> Result<LabelSelectorRequirement, BadSelector> {
    let bad = || BadSelector { part: part.to_owned() };
    let (key, operator, values) = match part {
        _ if part.starts_with('!') => (part.strip_prefix('!').unwrap_or_default(), "DoesNotExist", None),
        _ if part.ends_with(')') => {
            let (head, list) = part.strip_suffix(')').and_then(|part| part.split_once('(')).ok_or_else(bad)?;
            if list.trim().is_empty() {
                return Err(bad());
            }
            let (key, word) = head.trim().rsplit_once(' ').ok_or_else(bad)?;
            let operator = match word {
                "in" => "In",
                "notin" => "NotIn",
                _ => return Err(bad()),
            };
            (key, operator, Some(list.split(',').map(|value| value.trim().to_owned()).collect()))
        }
        _ if part.contains("!=") => pair(part, "!=", "NotIn").ok_or_else(bad)?,
        _ if part.contains("==") => pair(part, "==", "In").ok_or_else(bad)?,
        _ if part.contains('=') => pair(part, "=", "In").ok_or_else(bad)?,
        _ => (part, "Exists", None),
    };
    let key = key.trim();
    let good = is_key(key) && values.iter().flatten().all(|value: &String| value.is_empty() || is_word(value));
    let requirement = LabelSelectorRequirement { key: key.to_owned(), operator: operator.to_owned(), values };
    good.then_some(requirement).ok_or_else(bad)
}

/// A name, perhaps with a domain before it.
fn is_key(key: &str) -> bool {
    let (domain, name) = key.split_once('/').map_or((None, key), |(domain, name)| (Some(domain), name));
    let lower = |label: &str| label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    let is_domain = |domain: &str| domain.len() <= 253 && domain.split('.').all(|label| is_word(label) && lower(label));
    is_word(name) && domain.is_none_or(is_domain)
}

/// What a label may be called and hold.
fn is_word(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.len() <= 63 && text.chars().all(inner) && edge(text.chars().next()) && edge(text.chars().next_back())
}

fn pair<'a>(part: &'a str, sign: &str, operator: &'static str) -> Option<(&'a str, &'static str, Option<Vec<String>>)> {
    let (key, value) = part.split_once(sign)?;
    Some((key, operator, Some(vec![value.trim().to_owned()])))
}
