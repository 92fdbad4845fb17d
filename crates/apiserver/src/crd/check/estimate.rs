//! The cost of a rule as cel-go estimates it when a CRD is written: the worst case, from the limits in the schema alone.
//!
//! The rules are those of cel-go's checker and of Kubernetes' libraries. Where a type is not followed, a call counts as a single step, so
//! that the estimate is never above the original's.

use kube_cel::cel::{
    common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators},
    parser::Expression as Ast,
};

use super::declared::{Declared, Type};

/// What one rule may cost.
const RULE_LIMIT: u64 = 10_000_000;
/// What all rules of a schema may cost together.
pub(super) const SCHEMA_LIMIT: u64 = 100_000_000;

/// cel-go's factors for what looks at every character, and for the length of a regular expression.
const TRAVERSAL: f64 = 0.1;
const PATTERN: f64 = 0.25;
/// No number, time or duration has more characters.
const NUMBER: u64 = 32;
const LIST: u64 = 10;
const MAP: u64 = 30;

/// A bound of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    min: u64,
    max: u64,
}

impl Size {
    const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    fn fixed(size: u64) -> Self {
        Self { min: size, max: size }
    }

    fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    fn traversed(self, times: f64) -> u64 {
        scaled(self.max, TRAVERSAL * times)
    }
}

/// Rounded up.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "cel-go computes so; a cast saturates"
)]
fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

/// What is known of an expression.
#[derive(Clone, Debug)]
struct Node<'s> {
    kind: Type,
    declared: Option<Declared<'s>>,
    size: Option<Size>,
    /// The size of its items or values.
    entry: Option<Size>,
    cost: u64,
}

impl<'s> Node<'s> {
    fn of(kind: Type, cost: u64) -> Self {
        let scalar =
            matches!(kind, Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint);
        Self { kind, declared: None, size: scalar.then(|| Size::fixed(1)), entry: None, cost }
    }

    fn sized(kind: Type, cost: u64, size: Size) -> Self {
        Self { size: Some(size), ..Self::of(kind, cost) }
    }

    fn declared(declared: Declared<'s>, cost: u64) -> Self {
        let size = Some(Size { min: 0, max: declared.max_elements() });
        Self { kind: declared.kind(), declared: Some(declared), size, entry: None, cost }
    }

    /// What is not followed counts as small.
    fn unknown(cost: u64) -> Self {
        Self::sized(Type::Unknown, cost, Size::fixed(1))
    }

    fn size(&self) -> Size {
        self.size.unwrap_or(Size::UNKNOWN)
    }

    /// An item of a list or a value of a map.
    fn element(&self) -> Self {
        if let Some(element) = self.declared.and_then(Declared::element) {
            return Self::declared(element, 0);
        }
        let kind = match &self.kind {
            Type::List(items) => (**items).clone(),
            Type::Map(_, values) => (**values).clone(),
            Type::Dyn => Type::Dyn,
            _ => Type::Unknown,
        };
        let plain = Self::of(kind, 0);
        Self { size: self.entry.or(plain.size), ..plain }
    }

    /// What a loop with one variable gives it: items, or keys of a map.
    fn iterated(&self) -> Self {
        match &self.kind {
            Type::Map(key, _) => Self::of((**key).clone(), 0),
            _ => self.element(),
        }
    }
}

/// The most that an expression costs, and the type of what it gives.
pub(super) fn estimate<'s>(tree: &Ast, variables: Vec<(&str, Option<Declared<'s>>)>) -> (u64, Type) {
    let node = |(name, declared): (&str, Option<Declared<'s>>)| {
        (name.to_owned(), declared.map_or_else(|| Node::unknown(0), |declared| Node::declared(declared, 0)))
    };
    let mut walk = Walk { scope: variables.into_iter().map(node).collect() };
    let node = walk.node(tree);
    (node.cost, node.kind)
}

struct Walk<'s> {
    scope: Vec<(String, Node<'s>)>,
}

impl<'s> Walk<'s> {
    fn node(&mut self, tree: &Ast) -> Node<'s> {
        match &tree.expr {
            Expr::Literal(literal) => of_literal(literal),
            Expr::Ident(name) => {
                let found = self.scope.iter().rev().find(|(known, _)| known == name);
                found.map_or_else(|| Node::unknown(1), |(_, node)| Node { cost: 1, ..node.clone() })
            }
            Expr::Select(select) => {
                let operand = self.node(&select.operand);
                let cost = operand.cost.saturating_add(1);
                if select.test {
                    return Node::of(Type::Bool, cost);
                }
                let field = match operand.kind {
                    Type::Map(..) => Some(operand.element()),
                    _ => operand.declared.and_then(|of| of.field(&select.field)).map(|of| Node::declared(of, 0)),
                };
                field.map_or_else(|| Node::unknown(cost), |field| Node { cost, ..field })
            }
            Expr::Call(call) => self.call(call),
            Expr::List(list) => {
                let items: Vec<Node<'s>> = list.elements.iter().map(|item| self.node(item)).collect();
                let cost = sum(&items).saturating_add(LIST);
                let entry = items.iter().map(Node::size).reduce(Size::union).unwrap_or(Size::fixed(0));
                let same = |kind: &Type| items.iter().all(|item| item.kind == *kind);
                let kind = items.first().map(|item| item.kind.clone()).filter(same).unwrap_or(Type::Unknown);
                let size = Size::fixed(items.len() as u64);
                Node { entry: Some(entry), ..Node::sized(Type::List(Box::new(kind)), cost, size) }
            }
            Expr::Map(map) => {
                let mut cost = MAP;
                let mut entry = Size::fixed(0);
                for part in &map.entries {
                    if let EntryExpr::MapEntry(part) = &part.expr {
                        let (key, value) = (self.node(&part.key), self.node(&part.value));
                        cost = cost.saturating_add(key.cost).saturating_add(value.cost);
                        entry = entry.union(value.size());
                    }
                }
                let kind = Type::Map(Box::new(Type::Unknown), Box::new(Type::Unknown));
                Node { entry: Some(entry), ..Node::sized(kind, cost, Size::fixed(map.entries.len() as u64)) }
            }
            Expr::Comprehension(of) => self.comprehension(of),
            Expr::Struct(_) | Expr::Unspecified => Node::unknown(0),
        }
    }

    fn comprehension(&mut self, of: &ComprehensionExpr) -> Node<'s> {
        let (range, init) = (self.node(&of.iter_range), self.node(&of.accu_init));
        let depth = self.scope.len();
        let is_empty = matches!(&of.iter_range.expr, Expr::List(list) if list.elements.is_empty());
        self.scope.push((of.accu_var.clone(), init.clone()));
        if is_empty && !of.accu_var.starts_with('@') {
            // `cel.bind`
            let result = self.node(&of.result);
            self.scope.truncate(depth);
            let cost = [range.cost, init.cost].into_iter().fold(result.cost, u64::saturating_add);
            return Node { cost, ..result };
        }
        match &of.iter_var2 {
            None => self.scope.push((of.iter_var.clone(), range.iterated())),
            Some(second) => {
                self.scope.push((of.iter_var.clone(), Node::unknown(0)));
                self.scope.push((second.clone(), range.element()));
            }
        }
        let (test, step) = (self.node(&of.loop_cond), self.node(&of.loop_step));
        self.scope.truncate(depth + 1);
        let result = self.node(&of.result);
        self.scope.truncate(depth);
        let rounds = range.size().max.saturating_mul(step.cost.saturating_add(test.cost));
        let cost = [range.cost, init.cost, result.cost].into_iter().fold(rounds, u64::saturating_add);
        match of.accu_init.expr {
            Expr::List(_) | Expr::Map(_) => {
                let kind = if matches!(of.accu_init.expr, Expr::List(_)) { step.kind } else { init.kind };
                Node { entry: step.entry, ..Node::sized(kind, cost, range.size()) }
            }
            _ => Node { cost, ..result },
        }
    }

    fn call(&mut self, call: &CallExpr) -> Node<'s> {
        let args: Vec<Node<'s>> = call.args.iter().map(|arg| self.node(arg)).collect();
        let namespace = match call.target.as_deref().map(|target| &target.expr) {
            Some(Expr::Ident(name)) if !self.scope.iter().any(|(known, _)| known == name) => Some(name.as_str()),
            _ => None,
        };
        let target = call.target.as_deref().filter(|_| namespace.is_none()).map(|target| self.node(target));
        let before = sum(&args).saturating_add(target.as_ref().map_or(0, |target| target.cost));
        let made = match (call.func_name.as_str(), target, args.as_slice()) {
            (name, None, _) if name.starts_with('@') || name.contains('_') || name == "dyn" => {
                operator(name, &args, before)
            }
            (name, Some(target), _) => member(name, &target, &args),
            (name, None, _) => function(namespace.unwrap_or_default(), name, &args),
        };
        match made {
            Made::Whole(node) => node,
            Made::More(node) => Node { cost: node.cost.saturating_add(before), ..node },
        }
    }
}

/// What a call makes.
enum Made<'s> {
    /// With the cost of its arguments.
    Whole(Node<'s>),
    /// Without.
    More(Node<'s>),
}

fn sum(nodes: &[Node<'_>]) -> u64 {
    nodes.iter().fold(0, |sum, node| sum.saturating_add(node.cost))
}

fn of_literal<'s>(literal: &LiteralValue) -> Node<'s> {
    match literal {
        LiteralValue::String(text) => Node::sized(Type::Text, 0, Size::fixed(text.inner().chars().count() as u64)),
        LiteralValue::Bytes(bytes) => Node::sized(Type::Bytes, 0, Size::fixed(bytes.inner().len() as u64)),
        LiteralValue::Boolean(_) => Node::of(Type::Bool, 0),
        LiteralValue::Int(_) => Node::of(Type::Int, 0),
        LiteralValue::UInt(_) => Node::of(Type::Uint, 0),
        LiteralValue::Double(_) => Node::of(Type::Double, 0),
        LiteralValue::Null => Node::sized(Type::Null, 0, Size::fixed(1)),
    }
}

fn operator<'s>(name: &str, args: &[Node<'s>], before: u64) -> Made<'s> {
    let bool = |cost: u64| Node::of(Type::Bool, cost);
    match (name, args) {
        ("dyn", [one]) => Made::Whole(Node { kind: Type::Dyn, cost: before.saturating_add(1), ..one.clone() }),
        (operators::LOGICAL_AND | operators::LOGICAL_OR, _) => Made::Whole(bool(before)),
        (operators::CONDITIONAL, [test, yes, no]) => {
            let cost = test.cost.saturating_add(yes.cost.max(no.cost));
            let kind = if yes.kind == no.kind { yes.kind.clone() } else { Type::Unknown };
            let entry = yes.entry.zip(no.entry).map(|(yes, no)| yes.union(no));
            Made::Whole(Node { entry, ..Node::sized(kind, cost, yes.size().union(no.size())) })
        }
        (operators::INDEX, [of, _]) => Made::More(Node { cost: 1, ..of.element() }),
        (operators::ADD, [one, other]) => {
            let size = one.size().plus(other.size());
            let entry = one.entry.zip(other.entry).map(|(one, other)| one.union(other)).or(other.entry).or(one.entry);
            match (&one.kind, &other.kind) {
                (Type::Text, Type::Text) | (Type::Bytes, Type::Bytes) => {
                    Made::More(Node::sized(one.kind.clone(), size.traversed(1.0), size))
                }
                (Type::List(of), Type::List(other)) => {
                    let kind = if **of == Type::Unknown { other.clone() } else { of.clone() };
                    Made::More(Node { entry, ..Node::sized(Type::List(kind), 1, size) })
                }
                (Type::Unknown, _) | (_, Type::Unknown) => Made::More(Node::unknown(1)),
                (kind, _) => Made::More(Node::of(kind.clone(), 1)),
            }
        }
        (operators::EQUALS | operators::NOT_EQUALS, [one, other]) => {
            Made::More(bool(scaled(one.size().max.min(other.size().max), TRAVERSAL)))
        }
        (operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS, [one, other])
            if matches!(one.kind, Type::Text | Type::Bytes) =>
        {
            Made::More(bool(scaled(one.size().max.min(other.size().max), TRAVERSAL)))
        }
        (operators::IN, [_, list]) if matches!(list.kind, Type::List(_)) => Made::More(bool(list.size().max)),
        (
            operators::LESS
            | operators::LESS_EQUALS
            | operators::GREATER
            | operators::GREATER_EQUALS
            | operators::IN
            | operators::LOGICAL_NOT
            | operators::NOT_STRICTLY_FALSE,
            _,
        ) => Made::More(bool(1)),
        (
            operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO | operators::NEGATE,
            [one, ..],
        ) => Made::More(Node::of(one.kind.clone(), 1)),
        _ => Made::More(Node::unknown(1)),
    }
}

/// A function with a target.
fn member<'s>(name: &str, target: &Node<'s>, args: &[Node<'s>]) -> Made<'s> {
    let size = target.size();
    let arg = |place: usize| args.get(place).map_or(Size::UNKNOWN, Node::size);
    let texts = || Type::List(Box::new(Type::Text));
    let is_list = matches!(target.kind, Type::List(_));
    Made::More(match name {
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" if is_list => {
            let item = target.element();
            let each = match item.kind {
                Type::Text | Type::Bytes => 1 + item.size().traversed(1.0),
                _ => 1,
            };
            let cost = size.max.saturating_mul(each);
            match name {
                "isSorted" => Node::of(Type::Bool, cost),
                "indexOf" | "lastIndexOf" => Node::of(Type::Int, cost),
                _ => Node { cost, ..item },
            }
        }
        "indexOf" | "lastIndexOf" => Node::of(Type::Int, size.traversed(1.0)),
        "lowerAscii" | "upperAscii" | "substring" | "trim" => Node::sized(Type::Text, size.traversed(1.0), size),
        "replace" => Node::sized(Type::Text, size.traversed(2.0), replaced(size, arg(0), arg(1))),
        "split" => Node::sized(texts(), size.traversed(2.0), Size { min: 0, max: size.max }),
        "join" => {
            let items = target.element().size();
            let separators = arg(0).max.saturating_mul(if args.is_empty() { 0 } else { size.max.saturating_sub(1) });
            let made = Size { min: 0, max: size.max.saturating_mul(items.max).saturating_add(separators) };
            Node::sized(Type::Text, made.traversed(1.0), made)
        }
        "matches" | "find" | "findAll" => {
            let text = scaled(size.max.saturating_add(1), TRAVERSAL);
            let cost = text.saturating_mul(scaled(arg(0).max, PATTERN));
            match name {
                "matches" => Node::of(Type::Bool, cost),
                "find" => Node::sized(Type::Text, cost, Size { min: 0, max: size.max }),
                _ => Node::sized(texts(), cost, Size { min: 0, max: size.max }),
            }
        }
        "startsWith" | "endsWith" => Node::of(Type::Bool, arg(0).traversed(1.0)),
        "contains" if !is_list => Node::of(Type::Bool, size.traversed(1.0).saturating_mul(arg(0).traversed(1.0))),
        "format" => Node::sized(Type::Text, size.traversed(1.0), size),
        "size" => Node::of(Type::Int, 1),
        _ => Node::unknown(1),
    })
}

/// How long a text is after all replacements.
fn replaced(text: Size, from: Size, to: Size) -> Size {
    let max = if from.min == 0 {
        text.max.saturating_add(1).saturating_mul(to.max).saturating_add(text.max)
    } else if to.max <= from.min {
        text.max
    } else {
        text.max.div_ceil(from.min).saturating_mul(to.max)
    };
    Size { min: 0, max }
}

/// A function without a target, perhaps of a namespace.
fn function<'s>(namespace: &str, name: &str, args: &[Node<'s>]) -> Made<'s> {
    let arg = |place: usize| args.get(place).map_or(Size::UNKNOWN, Node::size);
    Made::More(match (namespace, name) {
        ("sets", "contains" | "intersects") => Node::of(Type::Bool, arg(0).max.saturating_mul(arg(1).max)),
        ("sets", "equivalent") => Node::of(Type::Bool, arg(0).max.saturating_mul(arg(1).max).saturating_mul(2)),
        ("", "size") => Node::of(Type::Int, 1),
        ("", "int") => Node::of(Type::Int, 1),
        ("", "uint") => Node::of(Type::Uint, 1),
        ("", "double") => Node::of(Type::Double, 1),
        ("", "bool") => Node::of(Type::Bool, 1),
        ("", "duration") => Node::of(Type::Duration, 1),
        ("", "timestamp") => Node::of(Type::Timestamp, 1),
        ("", "string") => match args.first().map(|arg| &arg.kind) {
            Some(Type::Bytes) => Node::sized(Type::Text, arg(0).traversed(1.0), arg(0)),
            Some(Type::Text) => Node::sized(Type::Text, 1, arg(0)),
            _ => Node::sized(Type::Text, 1, Size::fixed(NUMBER)),
        },
        ("", "bytes") => {
            let size = Size { min: arg(0).min, max: arg(0).max.saturating_mul(4) };
            Node::sized(Type::Bytes, arg(0).traversed(1.0), size)
        }
        ("strings", "quote") => {
            let size = Size { min: arg(0).min, max: arg(0).max.saturating_mul(2).saturating_add(2) };
            Node::sized(Type::Text, arg(0).traversed(1.0), size)
        }
        ("", "isURL" | "isIP" | "isCIDR" | "isQuantity" | "isSemver") => Node::of(Type::Bool, arg(0).traversed(1.0)),
        ("", "url" | "ip" | "cidr" | "quantity" | "semver") => Node::unknown(arg(0).traversed(1.0)),
        _ => Node::unknown(1),
    })
}

/// What is said of a rule, or of all of them, that cost too much; none if they do not.
pub(super) fn over_budget(what: &str, cost: u64, limit: u64) -> Option<String> {
    #[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
    let factor = cost as f64 / limit as f64;
    let shown = match factor {
        ..=1.0 => return None,
        100.0.. if factor > 100.0 => "more than 100x".to_owned(),
        ..1.5 => format!("{factor:.6}x"),
        _ => format!("{factor:.1}x"),
    };
    let advice = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and \
                  strings are declared)";
    Some(format!("{what} exceeds budget by factor of {shown} {advice}"))
}

/// What is said of a rule that costs too much by itself.
pub(super) fn rule_over_budget(what: &str, cost: u64) -> Option<String> {
    over_budget(what, cost, RULE_LIMIT)
}
