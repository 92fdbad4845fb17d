//! The positions of sub-expressions, and the errors at them.

use std::sync::Arc;

use kube_cel::cel::{
    common::ast::SourceInfo,
    parser::{Expression as Ast, Parser},
};

use super::CelType;
use crate::cel::{error, error_at_offset};

/// The limit of errors of one expression, as in cel-go.
const MAX_REPORTED_PROBLEMS: usize = 100;

/// A source and its errors.
pub(super) struct CheckedSource<'s> {
    text: &'s str,
    positions: Option<Arc<SourceInfo>>,
    problems: Vec<(usize, String)>,
}

impl<'s> CheckedSource<'s> {
    pub(super) fn parse(text: &'s str) -> Result<(Ast, Self), String> {
        let parse = |text: &str| Parser::new().enable_optional_syntax(true).parse(text);
        let tree = parse(text).map_err(|errors| error::parse_error(text, &errors))?;
        // The parser reports positions only with errors. A surplus bracket is an error that changes no other
        // part.
        let broken = parse(&format!("{text}\n)")).err();
        let positions = broken.and_then(|errors| errors.errors.into_iter().next()?.source_info);
        Ok((tree, Self { text, positions, problems: Vec::new() }))
    }

    pub(super) fn report(&mut self, id: u64, problem: String) {
        let position = self.positions.as_ref().and_then(|positions| positions.offset_for(id));
        let offset = position.and_then(|(start, _)| usize::try_from(start).ok()).unwrap_or_default();
        self.problems.push((offset, problem));
    }

    pub(super) fn has_problems(&self) -> bool {
        !self.problems.is_empty()
    }

    /// The type of the expression, or all errors in the order of their positions.
    pub(super) fn result(mut self, found: CelType) -> Result<CelType, String> {
        if self.problems.is_empty() {
            return Ok(found);
        }
        self.problems.sort_by_key(|(offset, _)| *offset);
        let more = self.problems.len().saturating_sub(MAX_REPORTED_PROBLEMS);
        let shown = self
            .problems
            .iter()
            .take(MAX_REPORTED_PROBLEMS)
            .map(|(offset, problem)| error_at_offset(self.text, *offset, problem));
        let mut shown: Vec<String> = shown.collect();
        if more > 0 {
            shown.push(format!("{more} more errors were truncated"));
        }
        Err(shown.join("\n"))
    }
}
