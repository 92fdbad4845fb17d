//! The types of expressions, as cel-go's checker has them.

use std::{cell::Cell, collections::HashMap, fmt, sync::Arc};

/// A type with more parts than this counts as `dyn`: nested loops could double it with every step.
const MAX_PARTS: usize = 500;

/// So many types are compared for one expression, which is far more than any that people write needs. Types that go around in
/// circles, or double with every step, end here: nothing matches any more.
const MAX_STEPS: u32 = 5_000_000;

/// The type of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// Found to be wrong already.
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
    List(Arc<Type>),
    Map(Arc<Type>, Arc<Type>),
    /// A type as a value.
    Meta(Arc<Type>),
    /// `optional_type(T)`
    Optional(Arc<Type>),
    /// A type of a library without fields that can be null.
    Opaque(&'static str),
    /// An object, whose fields the environment knows by its name.
    Struct(Arc<str>),
    /// A parameter of an overload, by its letter; or one that stands for a type that is still looked for.
    Param(u32),
}

impl Type {
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

    /// Its name as cel-go declares it, which for some types is not the one that its checker shows.
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

    /// The parts of a type with parameters.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Self> {
        let (first, second) = match self {
            Self::List(of) | Self::Meta(of) | Self::Optional(of) => (Some(&**of), None),
            Self::Map(key, value) => (Some(&**key), Some(&**value)),
            _ => (None, None),
        };
        first.into_iter().chain(second)
    }
}

impl fmt::Display for Type {
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

/// What type parameters stand for.
#[derive(Debug, Default)]
pub(super) struct Mapping {
    known: HashMap<u32, Type>,
    /// What was there before each change, to take changes back.
    changes: Vec<(u32, Option<Type>)>,
    next: u32,
    steps: Cell<u32>,
}

impl Mapping {
    /// Whether the expression has used up its steps.
    fn is_spent(&self) -> bool {
        self.steps.set(self.steps.get().saturating_add(1));
        self.steps.get() > MAX_STEPS
    }

    /// A parameter that nothing is known of.
    pub(super) fn fresh(&mut self) -> Type {
        self.next += 1;
        // Those of the table come first.
        Type::Param(self.next + super::library::PARAMS)
    }

    /// Whether each type can be given where the other is wanted. What is learnt of parameters is kept if all can.
    pub(super) fn assign_all<'t>(&mut self, pairs: impl Iterator<Item = (&'t Type, &'t Type)>) -> bool {
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

    /// The same for one pair.
    pub(super) fn assign(&mut self, one: &Type, other: &Type) -> bool {
        self.assign_all(std::iter::once((one, other)))
    }

    fn can_assign(&mut self, one: &Type, other: &Type) -> bool {
        if self.is_spent() {
            return false;
        }
        if let Type::Param(id) = other {
            match self.can_substitute(one, *id) {
                (true, _) => return true,
                (false, true) => return false,
                (false, false) => {}
            }
        }
        if let Type::Param(id) = one {
            return self.can_substitute(other, *id).0;
        }
        if one.is_dyn_or_error() || other.is_dyn_or_error() {
            return true;
        }
        match (one, other) {
            (Type::Null, other) | (other, Type::Null) => is_nullable(other),
            (Type::Meta(_), Type::Meta(_)) => true,
            (Type::List(one), Type::List(other)) | (Type::Optional(one), Type::Optional(other)) => {
                self.can_assign(one, other)
            }
            (Type::Map(key, value), Type::Map(other_key, other_value)) => {
                self.can_assign(key, other_key) && self.can_assign(value, other_value)
            }
            _ => one == other,
        }
    }

    /// Whether a parameter can stand for a type, and whether it stood for something before.
    fn can_substitute(&mut self, wanted: &Type, id: u32) -> (bool, bool) {
        if *wanted == Type::Param(id) {
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

    fn set(&mut self, id: u32, to: Type) {
        self.changes.push((id, self.known.insert(id, to)));
    }

    /// Whether a parameter is part of a type.
    fn occurs(&self, id: u32, within: &Type) -> bool {
        match within {
            _ if self.is_spent() => true,
            Type::Param(other) if *other == id => true,
            Type::Param(other) => self.known.get(other).is_some_and(|known| self.occurs(id, known)),
            _ => within.parts().any(|part| self.occurs(id, part)),
        }
    }

    /// A type with what its parameters stand for. Those that stand for nothing are `dyn` in the `end`.
    pub(super) fn substitute(&self, of: &Type, end: bool) -> Type {
        self.bounded(of, end, &mut 0)
    }

    fn bounded(&self, of: &Type, end: bool, parts: &mut usize) -> Type {
        *parts += 1;
        if *parts > MAX_PARTS {
            return Type::Dyn;
        }
        let mut inner = |of: &Type| Arc::new(self.bounded(of, end, parts));
        match of {
            Type::Param(id) => match self.known.get(id) {
                Some(known) => self.bounded(known, end, parts),
                None if end => Type::Dyn,
                None => of.clone(),
            },
            Type::List(of) => Type::List(inner(of)),
            Type::Optional(of) => Type::Optional(inner(of)),
            Type::Meta(of) => Type::Meta(inner(of)),
            Type::Map(key, value) => {
                let key = inner(key);
                Type::Map(key, inner(value))
            }
            _ => of.clone(),
        }
    }
}

fn is_nullable(of: &Type) -> bool {
    matches!(of, Type::Null | Type::Optional(_) | Type::Opaque(_) | Type::Struct(_) | Type::Duration | Type::Timestamp)
}

/// Of two types that go together, the one that allows more.
pub(super) fn most_general<'t>(one: &'t Type, other: &'t Type) -> &'t Type {
    if is_as_general(one, other) { one } else { other }
}

fn is_as_general(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (Type::Dyn | Type::Param(_), _) => true,
        (_, Type::Dyn | Type::Param(_)) => false,
        (Type::List(one), Type::List(other)) | (Type::Optional(one), Type::Optional(other)) => {
            is_as_general(one, other)
        }
        (Type::Map(key, value), Type::Map(other_key, other_value)) => {
            is_as_general(key, other_key) && is_as_general(value, other_value)
        }
        (Type::Meta(_), Type::Meta(_)) => true,
        _ => one == other,
    }
}
