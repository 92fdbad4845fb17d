//! Texts with expressions in them: `EXPR(body.user + "@")`.

use std::collections::BTreeMap;

use super::expression::{self, Expression, ExpressionError};
use crate::{
    decode::{Cursor, DecodeReport, scalar},
    yaml::NodeValue,
};

/// A text whose parts are known, or computed from the record.
#[derive(Clone, Debug, PartialEq)]
pub struct TextTemplate {
    pub parts: Vec<TemplatePart>,
}

/// A part of a [`TextTemplate`].
#[derive(Clone, Debug, PartialEq)]
pub enum TemplatePart {
    Text(String),
    /// An expression, whose value has to be text.
    Expression(Expression),
}

const EXPRESSION_START: &str = "EXPR(";
/// The most attributes in one map.
const MAX_ATTRIBUTES: usize = 1000;

impl TextTemplate {
    /// Splits a text at its expressions. The bracket that closes an expression is the last one before the next one.
    fn parse(text: &str) -> Result<Self, ExpressionError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(EXPRESSION_START) {
            let scope = after.find(EXPRESSION_START).unwrap_or(after.len());
            let Some(end) = after.get(..scope).and_then(|scope| scope.rfind(')')) else { break };
            push_text(&mut parts, before);
            let inner = after.get(..end).unwrap_or_default();
            let offset = text.len() - rest.len() + before.len() + EXPRESSION_START.len();
            let characters = text.get(..offset).unwrap_or_default().chars().count();
            let parsed = Expression::parse(inner)
                .map_err(|error| ExpressionError { column: error.column + characters, problem: error.problem })?;
            parts.push(TemplatePart::Expression(parsed));
            rest = after.get(end + 1..).unwrap_or_default();
        }
        push_text(&mut parts, rest);
        Ok(Self { parts })
    }

    /// The text, if it is the same for all records.
    pub fn as_text(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [TemplatePart::Text(text)] => Some(text),
            _ => None,
        }
    }
}

fn push_text(parts: &mut Vec<TemplatePart>, text: &str) {
    if !text.is_empty() {
        parts.push(TemplatePart::Text(text.to_owned()));
    }
}

/// Reads a map of names and texts.
pub(super) fn map(at: &Cursor<'_>, report: &DecodeReport) -> Option<BTreeMap<String, TextTemplate>> {
    let NodeValue::Map(entries) = &at.node.value else {
        return match at.node.value {
            NodeValue::Null | NodeValue::Bad => None,
            _ => scalar::wrong_type(at, report, "a map", None),
        };
    };
    report.mark_keys_public(entries);
    if entries.len() > MAX_ATTRIBUTES {
        report.error(at, format!("`{}` must have at most {MAX_ATTRIBUTES} entries", at.name()), None);
        return None;
    }
    let read = entries.iter().filter_map(|entry| Some((entry.key.text.clone(), template(&at.entry(entry), report)?)));
    Some(read.collect())
}

fn template(at: &Cursor<'_>, report: &DecodeReport) -> Option<TextTemplate> {
    let text = scalar::text(at, report)?;
    match TextTemplate::parse(&text) {
        Ok(template) => {
            for part in &template.parts {
                if let TemplatePart::Expression(part) = part {
                    expression::reported(at, report, &text, Ok(part.clone()));
                }
            }
            Some(template)
        }
        Err(error) => {
            expression::reported(at, report, &text, Err(error));
            None
        }
    }
}

impl TextTemplate {
    /// The text with its expressions.
    pub(super) fn to_text(&self) -> String {
        let part = |part: &TemplatePart| match part {
            TemplatePart::Text(text) => text.clone(),
            TemplatePart::Expression(expression) => format!("{EXPRESSION_START}{})", expression.as_str()),
        };
        self.parts.iter().map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let parts = TextTemplate::parse(text).unwrap().parts;
        let show = |part: TemplatePart| match part {
            TemplatePart::Text(text) => text,
            TemplatePart::Expression(expression) => format!("<{}>", expression.as_str()),
        };
        parts.into_iter().map(show).collect()
    }

    #[test]
    fn text_is_split_at_its_expressions() {
        assert_eq!(shown("plain (x)"), ["plain (x)"]);
        assert_eq!(shown("a-EXPR(body)-b"), ["a-", "<body>", "-b"]);
        assert_eq!(shown("EXPR(len(body) + 1)EXPR(body)"), ["<len(body) + 1>", "<body>"]);
        assert_eq!(shown("EXPR(body"), ["EXPR(body"]);
    }

    #[test]
    fn error_has_its_column_in_the_whole_text() {
        assert_eq!(TextTemplate::parse("é EXPR(1 +)").unwrap_err().column, 11);
    }
}
