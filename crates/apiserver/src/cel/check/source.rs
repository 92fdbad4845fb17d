//! Where the parts of an expression stand, and what is wrong there.

use std::sync::Arc;

use kube_cel::cel::{
    common::ast::SourceInfo,
    parser::{Expression as Ast, Parser},
};

use super::Type;
use crate::cel::{at, error};

/// cel-go shows so many problems of one expression.
const MAX_SHOWN: usize = 100;

/// A source and its problems.
pub(super) struct Source<'s> {
    text: &'s str,
    positions: Option<Arc<SourceInfo>>,
    problems: Vec<(usize, String)>,
}

impl<'s> Source<'s> {
    /// The tree of a source as the parser makes it.
    pub(super) fn parse(text: &'s str) -> Result<(Ast, Self), String> {
        let parse = |text: &str| Parser::new().enable_optional_syntax(true).parse(text);
        let tree = parse(text).map_err(|errors| error::of_parser(text, &errors))?;
        // The parser tells positions with errors only. A bracket that is too much is one, and changes no other part.
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

    /// The type that was found, or all problems in the order of their places.
    pub(super) fn result(mut self, found: Type) -> Result<Type, String> {
        if self.problems.is_empty() {
            return Ok(found);
        }
        self.problems.sort_by_key(|(offset, _)| *offset);
        let more = self.problems.len().saturating_sub(MAX_SHOWN);
        let shown = self.problems.iter().take(MAX_SHOWN).map(|(offset, problem)| at(self.text, *offset, problem));
        let mut shown: Vec<String> = shown.collect();
        if more > 0 {
            shown.push(format!("{more} more errors were truncated"));
        }
        Err(shown.join("\n"))
    }
}
