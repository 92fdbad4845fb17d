//! The cost of a rule as cel-go estimates it when a CRD is written: the worst case, from the limits in the
//! schema alone.
//!
//! The estimate follows cel-go's checker and Kubernetes' libraries. Where a type is not followed, a call counts
//! as a single step, so that the estimate is never above the original's.

use kube_cel::cel::{
    common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators},
    parser::Expression as Ast,
};

use super::declared_types::{DeclaredType, ExpressionType};

/// The cost limit of one rule.
const MAX_RULE_COST: u64 = 10_000_000;
/// The cost limit of all rules of a schema together.
pub(super) const MAX_SCHEMA_COST: u64 = 100_000_000;

/// cel-go's factors for reading every character, and for the length of a regular expression.
const TRAVERSAL_COST_FACTOR: f64 = 0.1;
const PATTERN_COST_FACTOR: f64 = 0.25;
/// The longest text of a number, time or duration.
const MAX_NUMBER_CHARS: u64 = 32;
const LIST_CREATE_COST: u64 = 10;
const MAP_CREATE_COST: u64 = 30;

/// A bound of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SizeEstimate {
    min: u64,
    max: u64,
}

impl SizeEstimate {
    const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    fn fixed(size: u64) -> Self {
        Self { min: size, max: size }
    }

    fn add(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    fn traversed(self, times: f64) -> u64 {
        scaled(self.max, TRAVERSAL_COST_FACTOR * times)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "cel-go computes so; a cast saturates"
)]
fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

/// The estimate of an expression.
#[derive(Clone, Debug)]
struct NodeEstimate<'s> {
    kind: ExpressionType,
    declared: Option<DeclaredType<'s>>,
    size: Option<SizeEstimate>,
    /// The size of its items or values.
    entry: Option<SizeEstimate>,
    cost: u64,
}

impl<'s> NodeEstimate<'s> {
    fn for_type(kind: ExpressionType, cost: u64) -> Self {
        let scalar = matches!(
            kind,
            ExpressionType::Bool
                | ExpressionType::Double
                | ExpressionType::Duration
                | ExpressionType::Int
                | ExpressionType::Timestamp
                | ExpressionType::Uint
        );
        Self { kind, declared: None, size: scalar.then(|| SizeEstimate::fixed(1)), entry: None, cost }
    }

    fn sized(kind: ExpressionType, cost: u64, size: SizeEstimate) -> Self {
        Self { size: Some(size), ..Self::for_type(kind, cost) }
    }

    fn declared(declared: DeclaredType<'s>, cost: u64) -> Self {
        let size = Some(SizeEstimate { min: 0, max: declared.max_elements() });
        Self { kind: declared.kind(), declared: Some(declared), size, entry: None, cost }
    }

    /// An unknown value, which counts as small.
    fn unknown(cost: u64) -> Self {
        Self::sized(ExpressionType::Unknown, cost, SizeEstimate::fixed(1))
    }

    fn size(&self) -> SizeEstimate {
        self.size.unwrap_or(SizeEstimate::UNKNOWN)
    }

    /// An item of a list or a value of a map.
    fn element(&self) -> Self {
        if let Some(element) = self.declared.and_then(DeclaredType::element) {
            return Self::declared(element, 0);
        }
        let kind = match &self.kind {
            ExpressionType::List(items) => (**items).clone(),
            ExpressionType::Map(_, values) => (**values).clone(),
            ExpressionType::Dyn => ExpressionType::Dyn,
            _ => ExpressionType::Unknown,
        };
        let plain = Self::for_type(kind, 0);
        Self { size: self.entry.or(plain.size), ..plain }
    }

    /// The variable of a loop: items of a list, or keys of a map.
    fn iterated(&self) -> Self {
        match &self.kind {
            ExpressionType::Map(key, _) => Self::for_type((**key).clone(), 0),
            _ => self.element(),
        }
    }
}

/// The worst-case cost of an expression, and its type.
pub(super) fn estimate<'s>(tree: &Ast, variables: Vec<(&str, Option<DeclaredType<'s>>)>) -> (u64, ExpressionType) {
    let node = |(name, declared): (&str, Option<DeclaredType<'s>>)| {
        (
            name.to_owned(),
            declared.map_or_else(|| NodeEstimate::unknown(0), |declared| NodeEstimate::declared(declared, 0)),
        )
    };
    let mut walk = EstimateWalk { scope: variables.into_iter().map(node).collect() };
    let node = walk.node(tree);
    (node.cost, node.kind)
}

struct EstimateWalk<'s> {
    scope: Vec<(String, NodeEstimate<'s>)>,
}

impl<'s> EstimateWalk<'s> {
    fn node(&mut self, tree: &Ast) -> NodeEstimate<'s> {
        match &tree.expr {
            Expr::Literal(literal) => estimate_literal(literal),
            Expr::Ident(name) => {
                let found = self.scope.iter().rev().find(|(known, _)| known == name);
                found.map_or_else(|| NodeEstimate::unknown(1), |(_, node)| NodeEstimate { cost: 1, ..node.clone() })
            }
            Expr::Select(select) => {
                let operand = self.node(&select.operand);
                let cost = operand.cost.saturating_add(1);
                if select.test {
                    return NodeEstimate::for_type(ExpressionType::Bool, cost);
                }
                let field = match operand.kind {
                    ExpressionType::Map(..) => Some(operand.element()),
                    _ => {
                        operand.declared.and_then(|of| of.field(&select.field)).map(|of| NodeEstimate::declared(of, 0))
                    }
                };
                field.map_or_else(|| NodeEstimate::unknown(cost), |field| NodeEstimate { cost, ..field })
            }
            Expr::Call(call) => self.call(call),
            Expr::List(list) => {
                let items: Vec<NodeEstimate<'s>> = list.elements.iter().map(|item| self.node(item)).collect();
                let cost = sum(&items).saturating_add(LIST_CREATE_COST);
                let entry =
                    items.iter().map(NodeEstimate::size).reduce(SizeEstimate::union).unwrap_or(SizeEstimate::fixed(0));
                let same = |kind: &ExpressionType| items.iter().all(|item| item.kind == *kind);
                let kind = items.first().map(|item| item.kind.clone()).filter(same).unwrap_or(ExpressionType::Unknown);
                let size = SizeEstimate::fixed(items.len() as u64);
                NodeEstimate {
                    entry: Some(entry),
                    ..NodeEstimate::sized(ExpressionType::List(Box::new(kind)), cost, size)
                }
            }
            Expr::Map(map) => {
                let mut cost = MAP_CREATE_COST;
                let mut entry = SizeEstimate::fixed(0);
                for part in &map.entries {
                    if let EntryExpr::MapEntry(part) = &part.expr {
                        let key = self.node(&part.key);
                        let value = self.node(&part.value);
                        cost = cost.saturating_add(key.cost).saturating_add(value.cost);
                        entry = entry.union(value.size());
                    }
                }
                let kind = ExpressionType::Map(Box::new(ExpressionType::Unknown), Box::new(ExpressionType::Unknown));
                NodeEstimate {
                    entry: Some(entry),
                    ..NodeEstimate::sized(kind, cost, SizeEstimate::fixed(map.entries.len() as u64))
                }
            }
            Expr::Comprehension(of) => self.comprehension(of),
            Expr::Struct(_) | Expr::Unspecified => NodeEstimate::unknown(0),
        }
    }

    fn comprehension(&mut self, of: &ComprehensionExpr) -> NodeEstimate<'s> {
        let range = self.node(&of.iter_range);
        let init = self.node(&of.accu_init);
        let depth = self.scope.len();
        let is_empty = matches!(&of.iter_range.expr, Expr::List(list) if list.elements.is_empty());
        self.scope.push((of.accu_var.clone(), init.clone()));
        if is_empty && !of.accu_var.starts_with('@') {
            // `cel.bind`
            let result = self.node(&of.result);
            self.scope.truncate(depth);
            let cost = [range.cost, init.cost].into_iter().fold(result.cost, u64::saturating_add);
            return NodeEstimate { cost, ..result };
        }
        match &of.iter_var2 {
            None => self.scope.push((of.iter_var.clone(), range.iterated())),
            Some(second) => {
                self.scope.push((of.iter_var.clone(), NodeEstimate::unknown(0)));
                self.scope.push((second.clone(), range.element()));
            }
        }
        let test = self.node(&of.loop_cond);
        let step = self.node(&of.loop_step);
        self.scope.truncate(depth + 1);
        let result = self.node(&of.result);
        self.scope.truncate(depth);
        let rounds = range.size().max.saturating_mul(step.cost.saturating_add(test.cost));
        let cost = [range.cost, init.cost, result.cost].into_iter().fold(rounds, u64::saturating_add);
        match of.accu_init.expr {
            Expr::List(_) | Expr::Map(_) => {
                let kind = if matches!(of.accu_init.expr, Expr::List(_)) { step.kind } else { init.kind };
                NodeEstimate { entry: step.entry, ..NodeEstimate::sized(kind, cost, range.size()) }
            }
            _ => NodeEstimate { cost, ..result },
        }
    }

    fn call(&mut self, call: &CallExpr) -> NodeEstimate<'s> {
        let args: Vec<NodeEstimate<'s>> = call.args.iter().map(|arg| self.node(arg)).collect();
        let namespace = match call.target.as_deref().map(|target| &target.expr) {
            Some(Expr::Ident(name)) if !self.scope.iter().any(|(known, _)| known == name) => Some(name.as_str()),
            _ => None,
        };
        let target = call.target.as_deref().filter(|_| namespace.is_none()).map(|target| self.node(target));
        let before = sum(&args).saturating_add(target.as_ref().map_or(0, |target| target.cost));
        let made = match (call.func_name.as_str(), target, args.as_slice()) {
            (name, None, _) if name.starts_with('@') || name.contains('_') || name == "dyn" => {
                estimate_operator(name, &args, before)
            }
            (name, Some(target), _) => estimate_member_call(name, &target, &args),
            (name, None, _) => estimate_function_call(namespace.unwrap_or_default(), name, &args),
        };
        match made {
            CallEstimate::Total(node) => node,
            CallEstimate::Additional(node) => NodeEstimate { cost: node.cost.saturating_add(before), ..node },
        }
    }
}

enum CallEstimate<'s> {
    /// Including the cost of the arguments.
    Total(NodeEstimate<'s>),
    Additional(NodeEstimate<'s>),
}

fn sum(nodes: &[NodeEstimate<'_>]) -> u64 {
    nodes.iter().fold(0, |sum, node| sum.saturating_add(node.cost))
}

fn estimate_literal<'s>(literal: &LiteralValue) -> NodeEstimate<'s> {
    match literal {
        LiteralValue::String(text) => {
            NodeEstimate::sized(ExpressionType::Text, 0, SizeEstimate::fixed(text.inner().chars().count() as u64))
        }
        LiteralValue::Bytes(bytes) => {
            NodeEstimate::sized(ExpressionType::Bytes, 0, SizeEstimate::fixed(bytes.inner().len() as u64))
        }
        LiteralValue::Boolean(_) => NodeEstimate::for_type(ExpressionType::Bool, 0),
        LiteralValue::Int(_) => NodeEstimate::for_type(ExpressionType::Int, 0),
        LiteralValue::UInt(_) => NodeEstimate::for_type(ExpressionType::Uint, 0),
        LiteralValue::Double(_) => NodeEstimate::for_type(ExpressionType::Double, 0),
        LiteralValue::Null => NodeEstimate::sized(ExpressionType::Null, 0, SizeEstimate::fixed(1)),
    }
}

fn estimate_operator<'s>(name: &str, args: &[NodeEstimate<'s>], before: u64) -> CallEstimate<'s> {
    let bool = |cost: u64| NodeEstimate::for_type(ExpressionType::Bool, cost);
    match (name, args) {
        ("dyn", [one]) => CallEstimate::Total(NodeEstimate {
            kind: ExpressionType::Dyn,
            cost: before.saturating_add(1),
            ..one.clone()
        }),
        (operators::LOGICAL_AND | operators::LOGICAL_OR, _) => CallEstimate::Total(bool(before)),
        (operators::CONDITIONAL, [test, yes, no]) => {
            let cost = test.cost.saturating_add(yes.cost.max(no.cost));
            let kind = if yes.kind == no.kind { yes.kind.clone() } else { ExpressionType::Unknown };
            let entry = yes.entry.zip(no.entry).map(|(yes, no)| yes.union(no));
            CallEstimate::Total(NodeEstimate { entry, ..NodeEstimate::sized(kind, cost, yes.size().union(no.size())) })
        }
        (operators::INDEX, [of, _]) => CallEstimate::Additional(NodeEstimate { cost: 1, ..of.element() }),
        (operators::ADD, [one, other]) => {
            let size = one.size().add(other.size());
            let entry = one.entry.zip(other.entry).map(|(one, other)| one.union(other)).or(other.entry).or(one.entry);
            match (&one.kind, &other.kind) {
                (ExpressionType::Text, ExpressionType::Text) | (ExpressionType::Bytes, ExpressionType::Bytes) => {
                    CallEstimate::Additional(NodeEstimate::sized(one.kind.clone(), size.traversed(1.0), size))
                }
                (ExpressionType::List(of), ExpressionType::List(other)) => {
                    let kind = if **of == ExpressionType::Unknown { other.clone() } else { of.clone() };
                    CallEstimate::Additional(NodeEstimate {
                        entry,
                        ..NodeEstimate::sized(ExpressionType::List(kind), 1, size)
                    })
                }
                (ExpressionType::Unknown, _) | (_, ExpressionType::Unknown) => {
                    CallEstimate::Additional(NodeEstimate::unknown(1))
                }
                (kind, _) => CallEstimate::Additional(NodeEstimate::for_type(kind.clone(), 1)),
            }
        }
        (operators::EQUALS | operators::NOT_EQUALS, [one, other]) => {
            CallEstimate::Additional(bool(scaled(one.size().max.min(other.size().max), TRAVERSAL_COST_FACTOR)))
        }
        (operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS, [one, other])
            if matches!(one.kind, ExpressionType::Text | ExpressionType::Bytes) =>
        {
            CallEstimate::Additional(bool(scaled(one.size().max.min(other.size().max), TRAVERSAL_COST_FACTOR)))
        }
        (operators::IN, [_, list]) if matches!(list.kind, ExpressionType::List(_)) => {
            CallEstimate::Additional(bool(list.size().max))
        }
        (
            operators::LESS
            | operators::LESS_EQUALS
            | operators::GREATER
            | operators::GREATER_EQUALS
            | operators::IN
            | operators::LOGICAL_NOT
            | operators::NOT_STRICTLY_FALSE,
            _,
        ) => CallEstimate::Additional(bool(1)),
        (
            operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO | operators::NEGATE,
            [one, ..],
        ) => CallEstimate::Additional(NodeEstimate::for_type(one.kind.clone(), 1)),
        _ => CallEstimate::Additional(NodeEstimate::unknown(1)),
    }
}

fn estimate_member_call<'s>(name: &str, target: &NodeEstimate<'s>, args: &[NodeEstimate<'s>]) -> CallEstimate<'s> {
    let size = target.size();
    let arg = |place: usize| args.get(place).map_or(SizeEstimate::UNKNOWN, NodeEstimate::size);
    let texts = || ExpressionType::List(Box::new(ExpressionType::Text));
    let is_list = matches!(target.kind, ExpressionType::List(_));
    CallEstimate::Additional(match name {
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" if is_list => {
            let item = target.element();
            let each = match item.kind {
                ExpressionType::Text | ExpressionType::Bytes => 1 + item.size().traversed(1.0),
                _ => 1,
            };
            let cost = size.max.saturating_mul(each);
            match name {
                "isSorted" => NodeEstimate::for_type(ExpressionType::Bool, cost),
                "indexOf" | "lastIndexOf" => NodeEstimate::for_type(ExpressionType::Int, cost),
                _ => NodeEstimate { cost, ..item },
            }
        }
        "indexOf" | "lastIndexOf" => NodeEstimate::for_type(ExpressionType::Int, size.traversed(1.0)),
        "lowerAscii" | "upperAscii" | "substring" | "trim" => {
            NodeEstimate::sized(ExpressionType::Text, size.traversed(1.0), size)
        }
        "replace" => {
            NodeEstimate::sized(ExpressionType::Text, size.traversed(2.0), replaced_size(size, arg(0), arg(1)))
        }
        "split" => NodeEstimate::sized(texts(), size.traversed(2.0), SizeEstimate { min: 0, max: size.max }),
        "join" => {
            let items = target.element().size();
            let separators = arg(0).max.saturating_mul(if args.is_empty() { 0 } else { size.max.saturating_sub(1) });
            let made = SizeEstimate { min: 0, max: size.max.saturating_mul(items.max).saturating_add(separators) };
            NodeEstimate::sized(ExpressionType::Text, made.traversed(1.0), made)
        }
        "matches" | "find" | "findAll" => {
            let text = scaled(size.max.saturating_add(1), TRAVERSAL_COST_FACTOR);
            let cost = text.saturating_mul(scaled(arg(0).max, PATTERN_COST_FACTOR));
            match name {
                "matches" => NodeEstimate::for_type(ExpressionType::Bool, cost),
                "find" => NodeEstimate::sized(ExpressionType::Text, cost, SizeEstimate { min: 0, max: size.max }),
                _ => NodeEstimate::sized(texts(), cost, SizeEstimate { min: 0, max: size.max }),
            }
        }
        "startsWith" | "endsWith" => NodeEstimate::for_type(ExpressionType::Bool, arg(0).traversed(1.0)),
        "contains" if !is_list => {
            NodeEstimate::for_type(ExpressionType::Bool, size.traversed(1.0).saturating_mul(arg(0).traversed(1.0)))
        }
        "format" => NodeEstimate::sized(ExpressionType::Text, size.traversed(1.0), size),
        "size" => NodeEstimate::for_type(ExpressionType::Int, 1),
        _ => NodeEstimate::unknown(1),
    })
}

/// The length of a text after all replacements.
fn replaced_size(text: SizeEstimate, from: SizeEstimate, to: SizeEstimate) -> SizeEstimate {
    let max = if from.min == 0 {
        text.max.saturating_add(1).saturating_mul(to.max).saturating_add(text.max)
    } else if to.max <= from.min {
        text.max
    } else {
        text.max.div_ceil(from.min).saturating_mul(to.max)
    };
    SizeEstimate { min: 0, max }
}

/// A global function, perhaps with a namespace.
fn estimate_function_call<'s>(namespace: &str, name: &str, args: &[NodeEstimate<'s>]) -> CallEstimate<'s> {
    let arg = |place: usize| args.get(place).map_or(SizeEstimate::UNKNOWN, NodeEstimate::size);
    CallEstimate::Additional(match (namespace, name) {
        ("sets", "contains" | "intersects") => {
            NodeEstimate::for_type(ExpressionType::Bool, arg(0).max.saturating_mul(arg(1).max))
        }
        ("sets", "equivalent") => {
            NodeEstimate::for_type(ExpressionType::Bool, arg(0).max.saturating_mul(arg(1).max).saturating_mul(2))
        }
        ("", "size") => NodeEstimate::for_type(ExpressionType::Int, 1),
        ("", "int") => NodeEstimate::for_type(ExpressionType::Int, 1),
        ("", "uint") => NodeEstimate::for_type(ExpressionType::Uint, 1),
        ("", "double") => NodeEstimate::for_type(ExpressionType::Double, 1),
        ("", "bool") => NodeEstimate::for_type(ExpressionType::Bool, 1),
        ("", "duration") => NodeEstimate::for_type(ExpressionType::Duration, 1),
        ("", "timestamp") => NodeEstimate::for_type(ExpressionType::Timestamp, 1),
        ("", "string") => match args.first().map(|arg| &arg.kind) {
            Some(ExpressionType::Bytes) => NodeEstimate::sized(ExpressionType::Text, arg(0).traversed(1.0), arg(0)),
            Some(ExpressionType::Text) => NodeEstimate::sized(ExpressionType::Text, 1, arg(0)),
            _ => NodeEstimate::sized(ExpressionType::Text, 1, SizeEstimate::fixed(MAX_NUMBER_CHARS)),
        },
        ("", "bytes") => {
            let size = SizeEstimate { min: arg(0).min, max: arg(0).max.saturating_mul(4) };
            NodeEstimate::sized(ExpressionType::Bytes, arg(0).traversed(1.0), size)
        }
        ("strings", "quote") => {
            let size = SizeEstimate { min: arg(0).min, max: arg(0).max.saturating_mul(2).saturating_add(2) };
            NodeEstimate::sized(ExpressionType::Text, arg(0).traversed(1.0), size)
        }
        ("", "isURL" | "isIP" | "isCIDR" | "isQuantity" | "isSemver") => {
            NodeEstimate::for_type(ExpressionType::Bool, arg(0).traversed(1.0))
        }
        ("", "url" | "ip" | "cidr" | "quantity" | "semver") => NodeEstimate::unknown(arg(0).traversed(1.0)),
        _ => NodeEstimate::unknown(1),
    })
}

/// The message about an excessive cost of a rule, or of all rules; none if it is within the limit.
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

/// The message about a single rule with an excessive cost.
pub(super) fn rule_over_budget(what: &str, cost: u64) -> Option<String> {
    over_budget(what, cost, MAX_RULE_COST)
}
