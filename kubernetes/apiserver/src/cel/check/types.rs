//! The types of expressions, equivalent to those of cel-go's checker.

use std::{cell::Cell, collections::HashMap, fmt, sync::Arc};

/// A type with more parts than this counts as `dyn`: nested loops could double it with every step.
const MAX_TYPE_PARTS: usize = 500;

/// The limit of comparisons for one expression, far more than any handwritten one needs. It ends the comparison
/// of types that are cyclic, or double with every step: nothing matches any more.
const MAX_COMPARISON_STEPS: u32 = 5_000_000;

/// The type of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CelType {
    /// An error was reported already.
    Error,
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    List(Arc<CelType>),
    Map(Arc<CelType>, Arc<CelType>),
    /// A type as a value.
    Meta(Arc<CelType>),
    Optional(Arc<CelType>),
    /// A library type without fields that can be null.
    Opaque(&'static str),
    /// An object; its fields are in the environment, by type name.
    Struct(Arc<str>),
    /// A type parameter of an overload, by its letter; or one for a type that is not inferred yet.
    Param(u32),
}

impl CelType {
    pub(crate) fn list(of: Self) -> Self {
        Self::List(Arc::new(of))
    }

    pub(crate) fn map(key: Self, value: Self) -> Self {
        Self::Map(Arc::new(key), Arc::new(value))
    }

    pub(crate) fn optional(of: Self) -> Self {
        Self::Optional(Arc::new(of))
    }

    pub(crate) fn object(name: &str) -> Self {
        Self::Struct(Arc::from(name))
    }

    /// The name of its declaration in cel-go, which for some types differs from the name in the checker's
    /// messages.
    pub(crate) fn declared_name(&self) -> String {
        match self {
            Self::Null => "null_type".to_owned(),
            Self::Duration => "google.protobuf.Duration".to_owned(),
            Self::Timestamp => "google.protobuf.Timestamp".to_owned(),
            Self::List(of) => format!("list({})", of.declared_name()),
            Self::Map(key, value) => format!("map({}, {})", key.declared_name(), value.declared_name()),
            Self::Meta(of) => format!("type({})", of.declared_name()),
            Self::Optional(of) => format!("optional_type({})", of.declared_name()),
            other => other.to_string(),
        }
    }

    pub(super) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    /// The type arguments.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Self> {
        let (first, second) = match self {
            Self::List(of) | Self::Meta(of) | Self::Optional(of) => (Some(&**of), None),
            Self::Map(key, value) => (Some(&**key), Some(&**value)),
            _ => (None, None),
        };
        first.into_iter().chain(second)
    }
}

impl fmt::Display for CelType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "!error!",
            Self::Dyn => "dyn",
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Duration => "duration",
            Self::Timestamp => "timestamp",
            Self::List(of) => return write!(f, "list({of})"),
            Self::Map(key, value) => return write!(f, "map({key}, {value})"),
            Self::Meta(of) => return write!(f, "type({of})"),
            Self::Optional(of) => return write!(f, "optional_type({of})"),
            Self::Opaque(name) => name,
            Self::Struct(name) => name,
            Self::Param(id) => return write!(f, "_var{id}"),
        })
    }
}

/// The inferred type parameters.
#[derive(Debug, Default)]
pub(super) struct TypeMapping {
    known: HashMap<u32, CelType>,
    /// The previous value before each change, to undo changes.
    changes: Vec<(u32, Option<CelType>)>,
    next: u32,
    steps: Cell<u32>,
}

impl TypeMapping {
    /// Whether the limit of comparisons is reached.
    fn is_spent(&self) -> bool {
        self.steps.set(self.steps.get().saturating_add(1));
        self.steps.get() > MAX_COMPARISON_STEPS
    }

    /// A type parameter that is not inferred yet.
    pub(super) fn fresh_type_param(&mut self) -> CelType {
        self.next += 1;
        // Those of the table have the first numbers.
        CelType::Param(self.next + super::library::MAX_TYPE_PARAMS)
    }

    /// Whether each type is assignable to its counterpart. Inferred parameters are kept only if all are.
    pub(super) fn assign_all<'t>(&mut self, pairs: impl Iterator<Item = (&'t CelType, &'t CelType)>) -> bool {
        let before = self.changes.len();
        let mut pairs = pairs;
        let can = pairs.all(|(one, other)| self.can_assign(one, other));
        while !can && self.changes.len() > before {
            let Some((id, old)) = self.changes.pop() else { break };
            match old {
                Some(old) => self.known.insert(id, old),
                None => self.known.remove(&id),
            };
        }
        can
    }

    pub(super) fn assign(&mut self, one: &CelType, other: &CelType) -> bool {
        self.assign_all(std::iter::once((one, other)))
    }

    fn can_assign(&mut self, one: &CelType, other: &CelType) -> bool {
        if self.is_spent() {
            return false;
        }
        if let CelType::Param(id) = other {
            match self.can_substitute(one, *id) {
                (true, _) => return true,
                (false, true) => return false,
                (false, false) => {}
            }
        }
        if let CelType::Param(id) = one {
            return self.can_substitute(other, *id).0;
        }
        if one.is_dyn_or_error() || other.is_dyn_or_error() {
            return true;
        }
        match (one, other) {
            (CelType::Null, other) | (other, CelType::Null) => is_nullable(other),
            (CelType::Meta(_), CelType::Meta(_)) => true,
            (CelType::List(one), CelType::List(other)) | (CelType::Optional(one), CelType::Optional(other)) => {
                self.can_assign(one, other)
            }
            (CelType::Map(key, value), CelType::Map(other_key, other_value)) => {
                self.can_assign(key, other_key) && self.can_assign(value, other_value)
            }
            _ => one == other,
        }
    }

    /// Whether a type can be substituted for a parameter, and whether one was before.
    fn can_substitute(&mut self, wanted: &CelType, id: u32) -> (bool, bool) {
        if *wanted == CelType::Param(id) {
            return (true, true);
        }
        if let Some(known) = self.known.get(&id).cloned() {
            if *wanted == known {
                return (true, true);
            }
            if !self.can_assign(wanted, &known) {
                return (false, true);
            }
            let general = most_general(wanted, &known);
            if !self.occurs(id, general) {
                let general = general.clone();
                self.set(id, general);
            }
            return (true, true);
        }
        if self.occurs(id, wanted) {
            return (false, false);
        }
        self.set(id, wanted.clone());
        (true, false)
    }

    fn set(&mut self, id: u32, to: CelType) {
        self.changes.push((id, self.known.insert(id, to)));
    }

    /// Whether a type contains a parameter.
    fn occurs(&self, id: u32, within: &CelType) -> bool {
        match within {
            _ if self.is_spent() => true,
            CelType::Param(other) if *other == id => true,
            CelType::Param(other) => self.known.get(other).is_some_and(|known| self.occurs(id, known)),
            _ => within.parts().any(|part| self.occurs(id, part)),
        }
    }

    /// A type with its parameters substituted. Those without a substitution become `dyn` at the `end`.
    pub(super) fn substitute(&self, of: &CelType, end: bool) -> CelType {
        self.substitute_bounded(of, end, &mut 0)
    }

    fn substitute_bounded(&self, of: &CelType, end: bool, parts: &mut usize) -> CelType {
        *parts += 1;
        if *parts > MAX_TYPE_PARTS {
            return CelType::Dyn;
        }
        let mut inner = |of: &CelType| Arc::new(self.substitute_bounded(of, end, parts));
        match of {
            CelType::Param(id) => match self.known.get(id) {
                Some(known) => self.substitute_bounded(known, end, parts),
                None if end => CelType::Dyn,
                None => of.clone(),
            },
            CelType::List(of) => CelType::List(inner(of)),
            CelType::Optional(of) => CelType::Optional(inner(of)),
            CelType::Meta(of) => CelType::Meta(inner(of)),
            CelType::Map(key, value) => {
                let key = inner(key);
                CelType::Map(key, inner(value))
            }
            _ => of.clone(),
        }
    }
}

fn is_nullable(of: &CelType) -> bool {
    matches!(
        of,
        CelType::Null
            | CelType::Optional(_)
            | CelType::Opaque(_)
            | CelType::Struct(_)
            | CelType::Duration
            | CelType::Timestamp
    )
}

/// The more general one of two compatible types.
pub(super) fn most_general<'t>(one: &'t CelType, other: &'t CelType) -> &'t CelType {
    if is_as_general(one, other) { one } else { other }
}

fn is_as_general(one: &CelType, other: &CelType) -> bool {
    match (one, other) {
        (CelType::Dyn | CelType::Param(_), _) => true,
        (_, CelType::Dyn | CelType::Param(_)) => false,
        (CelType::List(one), CelType::List(other)) | (CelType::Optional(one), CelType::Optional(other)) => {
            is_as_general(one, other)
        }
        (CelType::Map(key, value), CelType::Map(other_key, other_value)) => {
            is_as_general(key, other_key) && is_as_general(value, other_value)
        }
        (CelType::Meta(_), CelType::Meta(_)) => true,
        _ => one == other,
    }
}
