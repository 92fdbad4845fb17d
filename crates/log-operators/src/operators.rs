//! The operators, made from their settings.

mod container;
mod csv;
mod interpret;
mod key_value;
mod parser;
mod recombine;
mod syslog;
mod transform;
mod unquote;
mod uri;

#[cfg(test)]
mod tests;

use std::{borrow::Cow, fmt};

use kubewake_config::file_log::{Expression, OperatorConfig, OperatorKind};

pub use self::container::parse_container_path;
pub(crate) use self::recombine::Recombiner;
use self::{container::ContainerOperator, interpret::TimeOperator, parser::ParserOperator};
use crate::{entry::LogEntry, evaluate::is_true};

/// Why a record could not be processed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError(Cow<'static, str>);

impl RecordError {
    pub(crate) fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RecordError {}

/// What becomes of a record after an operator.
pub(crate) enum Verdict {
    /// It goes on to the outputs of the operator.
    Forward(LogEntry),
    /// It goes on to the outputs of a route.
    Route(LogEntry, usize),
    /// It is dropped on purpose.
    Drop,
    /// It could not be processed.
    Fail(LogEntry, RecordError),
    /// The operator holds it, or has put what goes on into the list that it was given.
    Taken,
}

impl Verdict {
    fn from_result(entry: LogEntry, result: Result<(), RecordError>) -> Self {
        match result {
            Ok(()) => Self::Forward(entry),
            Err(error) => Self::Fail(entry, error),
        }
    }
}

/// An operator at work.
pub(crate) struct Operator {
    condition: Option<Expression>,
    action: Action,
}

enum Action {
    /// An operator that changes records by its settings alone.
    Transform(OperatorKind),
    Filter {
        expression: Expression,
        sampler: DropSampler,
    },
    Router(OperatorKind),
    Time(TimeOperator),
    Parser(Box<ParserOperator>),
    Container(Box<ContainerOperator>),
    Recombine(Box<Recombiner>),
}

impl Operator {
    pub(crate) fn new(config: &OperatorConfig) -> Self {
        let action = match &config.kind {
            OperatorKind::Filter { expression, drop_ratio } => {
                Action::Filter { expression: expression.clone(), sampler: DropSampler::new(*drop_ratio) }
            }
            OperatorKind::Router { .. } => Action::Router(config.kind.clone()),
            OperatorKind::Time(parse) => Action::Time(TimeOperator::new(parse)),
            OperatorKind::Recombine(config) => Action::Recombine(Box::new(Recombiner::new((**config).clone()))),
            OperatorKind::Parser(config) => match ContainerOperator::from_config(config) {
                Some(container) => Action::Container(Box::new(container)),
                None => Action::Parser(Box::new(ParserOperator::new(config))),
            },
            kind => Action::Transform(kind.clone()),
        };
        Self { condition: config.condition.clone(), action }
    }

    /// Processes a record. What an operator joins or gives up goes to `joined`.
    pub(crate) fn process(&mut self, mut entry: LogEntry, joined: &mut Vec<LogEntry>) -> Verdict {
        if let Some(condition) = &self.condition {
            match is_true(condition, &entry) {
                Ok(true) => {}
                Ok(false) => return Verdict::Forward(entry),
                Err(error) => return Verdict::Fail(entry, error),
            }
        }
        match &mut self.action {
            Action::Transform(kind) => {
                let result = transform::apply(kind, &mut entry);
                Verdict::from_result(entry, result)
            }
            Action::Time(time) => {
                let result = time.apply(&mut entry);
                Verdict::from_result(entry, result)
            }
            Action::Parser(parser) => {
                let result = parser.apply(&mut entry);
                Verdict::from_result(entry, result)
            }
            Action::Filter { expression, sampler } => match is_true(expression, &entry) {
                Ok(true) if sampler.drops() => Verdict::Drop,
                Ok(_) => Verdict::Forward(entry),
                Err(error) => Verdict::Fail(entry, error),
            },
            Action::Router(kind) => transform::route(kind, entry),
            Action::Container(container) => container.process(entry, joined),
            Action::Recombine(recombiner) => recombiner.process(entry, joined),
        }
    }

    /// What the operator holds.
    pub(crate) fn recombiner(&self) -> Option<&Recombiner> {
        match &self.action {
            Action::Container(container) => Some(container.recombiner()),
            Action::Recombine(recombiner) => Some(recombiner),
            _ => None,
        }
    }

    /// As [`Self::recombiner`].
    pub(crate) fn recombiner_mut(&mut self) -> Option<&mut Recombiner> {
        match &mut self.action {
            Action::Container(container) => Some(container.recombiner_mut()),
            Action::Recombine(recombiner) => Some(recombiner),
            _ => None,
        }
    }
}

/// `drop_ratio`: drops a share of records by chance.
struct DropSampler {
    ratio: f64,
    state: u64,
}

impl DropSampler {
    fn new(ratio: f64) -> Self {
        use std::hash::{BuildHasher, Hasher, RandomState};
        Self { ratio, state: RandomState::new().build_hasher().finish() }
    }

    fn drops(&mut self) -> bool {
        if self.ratio >= 1.0 {
            return true;
        }
        // SplitMix64, which is even enough for this.
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let chance = ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
        chance < self.ratio
    }
}
