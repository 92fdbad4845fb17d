//! The functions of expressions: the operators and standard functions of CEL, its extensions for strings, sets
//! and lists, optional values, and Kubernetes' own libraries.

use std::collections::HashMap;

use super::{super::macros::SORT_BY_KEYS, types::CelType};

/// An overload of a function. Its type parameters are numbered from zero.
#[derive(Debug)]
pub(super) struct Overload {
    pub(super) is_member: bool,
    pub(super) args: Vec<CelType>,
    pub(super) result: CelType,
    pub(super) is_generic: bool,
}

/// The highest number of type parameters of an overload.
pub(super) const MAX_TYPE_PARAMS: u32 = 2;

/// Functions by name, one per line: `name: args > result; …`. A member function has its target before a dot.
/// Capitals are type parameters.
const FUNCTION_DECLARATIONS: &str = "\
_?_:_: bool A A > A
_&&_: bool bool > bool
_||_: bool bool > bool
!_: bool > bool
@not_strictly_false: bool > bool
_==_: A A > bool
_!=_: A A > bool
_+_: bytes bytes > bytes; double double > double; duration duration > duration; duration timestamp > timestamp; timestamp duration > timestamp; int int > int; [A] [A] > [A]; string string > string; uint uint > uint
_/_: double double > double; int int > int; uint uint > uint
_%_: int int > int; uint uint > uint
_*_: double double > double; int int > int; uint uint > uint
-_: double > double; int > int
_-_: double double > double; duration duration > duration; int int > int; timestamp duration > timestamp; timestamp timestamp > duration; uint uint > uint
_[_]: [A] int > A; {A,B} A > B; ?[A] int > ?A; ?{A,B} A > ?B
_[?_]: [A] int > ?A; ?[A] int > ?A; {A,B} A > ?B; ?{A,B} A > ?B
@in: A [A] > bool; A {A,B} > bool
size: bytes > int; bytes . > int; [A] > int; [A] . > int; {A,B} > int; {A,B} . > int; string > int; string . > int
type: A > type(A)
bool: bool > bool; string > bool
bytes: bytes > bytes; string > bytes
double: double > double; int > double; string > double; uint > double
duration: duration > duration; int > duration; string > duration
dyn: A > dyn
int: int > int; double > int; duration > int; string > int; timestamp > int; uint > int
string: string > string; bool > string; bytes > string; double > string; duration > string; int > string; timestamp > string; uint > string; net.IP > string; net.CIDR > string
timestamp: timestamp > timestamp; int > timestamp; string > timestamp
uint: uint > uint; double > uint; int > uint; string > uint
contains: string . string > bool
endsWith: string . string > bool
startsWith: string . string > bool
matches: string string > bool; string . string > bool
getFullYear: timestamp . > int; timestamp . string > int
getMonth: timestamp . > int; timestamp . string > int
getDayOfYear: timestamp . > int; timestamp . string > int
getDayOfMonth: timestamp . > int; timestamp . string > int
getDate: timestamp . > int; timestamp . string > int
getDayOfWeek: timestamp . > int; timestamp . string > int
getHours: timestamp . > int; timestamp . string > int; duration . > int
getMinutes: timestamp . > int; timestamp . string > int; duration . > int
getSeconds: timestamp . > int; timestamp . string > int; duration . > int
getMilliseconds: timestamp . > int; timestamp . string > int; duration . > int
charAt: string . int > string
indexOf: string . string > int; string . string int > int; [A] . A > int
lastIndexOf: string . string > int; string . string int > int; [A] . A > int
lowerAscii: string . > string
upperAscii: string . > string
replace: string . string string > string; string . string string int > string
split: string . string > [string]; string . string int > [string]
substring: string . int > string; string . int int > string
trim: string . > string
format: string . [dyn] > string
strings.quote: string > string
join: [string] . > string; [string] . string > string
sets.contains: [A] [A] > bool
sets.equivalent: [A] [A] > bool
sets.intersects: [A] [A] > bool
slice: [A] . int int > [A]
flatten: [[A]] . > [A]; [dyn] . int > [dyn]
lists.range: int > [int]
reverse: [A] . > [A]
distinct: [A] . > [A]
cel.@mapInsert: {A,B} A B > {A,B}; {A,B} {A,B} > {A,B}
optional.of: A > ?A
optional.ofNonZeroValue: A > ?A
optional.none: > ?A
optional.unwrap: [?A] > [A]
unwrapOpt: [?A] . > [A]
value: ?A . > A
hasValue: ?A . > bool
or: ?A . ?A > ?A
orValue: ?A . A > A
first: [A] . > ?A
last: [A] . > ?A
find: string . string > string
findAll: string . string > [string]; string . string int > [string]
url: string > kubernetes.URL
isURL: string > bool
getScheme: kubernetes.URL . > string
getHost: kubernetes.URL . > string
getHostname: kubernetes.URL . > string
getPort: kubernetes.URL . > string
getEscapedPath: kubernetes.URL . > string
getQuery: kubernetes.URL . > {string,[string]}
ip: string > net.IP; net.CIDR . > net.IP
isIP: string > bool
ip.isCanonical: string > bool
family: net.IP . > int
isUnspecified: net.IP . > bool
isLoopback: net.IP . > bool
isLinkLocalMulticast: net.IP . > bool
isLinkLocalUnicast: net.IP . > bool
isGlobalUnicast: net.IP . > bool
cidr: string > net.CIDR
isCIDR: string > bool
containsIP: net.CIDR . string > bool; net.CIDR . net.IP > bool
containsCIDR: net.CIDR . string > bool; net.CIDR . net.CIDR > bool
prefixLength: net.CIDR . > int
masked: net.CIDR . > net.CIDR
quantity: string > kubernetes.Quantity
isQuantity: string > bool
sign: kubernetes.Quantity > int
isGreaterThan: kubernetes.Quantity . kubernetes.Quantity > bool; kubernetes.Semver . kubernetes.Semver > bool
isLessThan: kubernetes.Quantity . kubernetes.Quantity > bool; kubernetes.Semver . kubernetes.Semver > bool
compareTo: kubernetes.Quantity . kubernetes.Quantity > int; kubernetes.Semver . kubernetes.Semver > int
asApproximateFloat: kubernetes.Quantity . > double
asInteger: kubernetes.Quantity . > int
isInteger: kubernetes.Quantity . > bool
add: kubernetes.Quantity . kubernetes.Quantity > kubernetes.Quantity; kubernetes.Quantity . int > kubernetes.Quantity
sub: kubernetes.Quantity . kubernetes.Quantity > kubernetes.Quantity; kubernetes.Quantity . int > kubernetes.Quantity
semver: string > kubernetes.Semver; string bool > kubernetes.Semver
isSemver: string > bool; string bool > bool
major: kubernetes.Semver . > int
minor: kubernetes.Semver . > int
patch: kubernetes.Semver . > int
format.named: string > ?kubernetes.NamedFormat
validate: kubernetes.NamedFormat . string > ?[string]
path: kubernetes.authorization.Authorizer . string > kubernetes.authorization.PathCheck
group: kubernetes.authorization.Authorizer . string > kubernetes.authorization.GroupCheck
serviceAccount: kubernetes.authorization.Authorizer . string string > kubernetes.authorization.Authorizer
resource: kubernetes.authorization.GroupCheck . string > kubernetes.authorization.ResourceCheck
subresource: kubernetes.authorization.ResourceCheck . string > kubernetes.authorization.ResourceCheck
namespace: kubernetes.authorization.ResourceCheck . string > kubernetes.authorization.ResourceCheck
name: kubernetes.authorization.ResourceCheck . string > kubernetes.authorization.ResourceCheck
fieldSelector: kubernetes.authorization.ResourceCheck . string > kubernetes.authorization.ResourceCheck
labelSelector: kubernetes.authorization.ResourceCheck . string > kubernetes.authorization.ResourceCheck
check: kubernetes.authorization.PathCheck . string > kubernetes.authorization.Decision; kubernetes.authorization.ResourceCheck . string > kubernetes.authorization.Decision
errored: kubernetes.authorization.Decision . > bool
error: kubernetes.authorization.Decision . > string
allowed: kubernetes.authorization.Decision . > bool
reason: kubernetes.authorization.Decision . > string
";

/// Types with an order, and those with an addition.
const ORDERED_TYPES: [CelType; 8] = [
    CelType::Int,
    CelType::Uint,
    CelType::Double,
    CelType::Bool,
    CelType::Duration,
    CelType::Timestamp,
    CelType::String,
    CelType::Bytes,
];
const SUMMABLE_TYPES: [CelType; 4] = [CelType::Int, CelType::Uint, CelType::Double, CelType::Duration];
const NUMBER_TYPES: [CelType; 3] = [CelType::Int, CelType::Uint, CelType::Double];

pub(super) fn parse_declarations() -> HashMap<&'static str, Vec<Overload>> {
    let mut all: HashMap<&'static str, Vec<Overload>> = HashMap::new();
    for line in FUNCTION_DECLARATIONS.lines() {
        let Some((name, overloads)) = line.split_once(": ") else { continue };
        all.entry(name).or_default().extend(overloads.split("; ").map(parse_overload));
    }
    for name in ["_<_", "_<=_", "_>_", "_>=_"] {
        let same = ORDERED_TYPES.iter().map(|of| (of, of));
        let numbers = NUMBER_TYPES.iter().flat_map(|one| NUMBER_TYPES.iter().map(move |other| (one, other)));
        let pairs = same.chain(numbers.filter(|(one, other)| one != other));
        let overloads =
            pairs.map(|(one, other)| simple_overload(false, vec![one.clone(), other.clone()], CelType::Bool));
        all.entry(name).or_default().extend(overloads);
    }
    for (name, types) in
        [("isSorted", &ORDERED_TYPES[..]), ("max", &ORDERED_TYPES), ("min", &ORDERED_TYPES), ("sum", &SUMMABLE_TYPES)]
    {
        let result = |of: &CelType| if name == "isSorted" { CelType::Bool } else { of.clone() };
        let overloads = types.iter().map(|of| simple_overload(true, vec![CelType::list(of.clone())], result(of)));
        all.entry(name).or_default().extend(overloads);
    }
    let sort = ORDERED_TYPES
        .iter()
        .map(|of| simple_overload(true, vec![CelType::list(of.clone())], CelType::list(of.clone())));
    all.entry("sort").or_default().extend(sort);
    let sort_by = ORDERED_TYPES.iter().map(|of| {
        let list = CelType::list(CelType::Param(0));
        Overload {
            is_member: true,
            args: vec![list.clone(), CelType::list(of.clone())],
            result: list,
            is_generic: true,
        }
    });
    all.entry(SORT_BY_KEYS).or_default().extend(sort_by);
    all
}

/// The type that a name denotes where types are values.
pub(super) fn type_by_name(name: &str) -> Option<CelType> {
    let of = match name {
        "list" => CelType::list(CelType::Dyn),
        "map" => CelType::map(CelType::Dyn, CelType::Dyn),
        "null_type" => CelType::Null,
        "type" => CelType::Meta(CelType::Dyn.into()),
        "optional_type" => CelType::optional(CelType::Dyn),
        "google.protobuf.Duration" => CelType::Duration,
        "google.protobuf.Timestamp" => CelType::Timestamp,
        "bool"
        | "int"
        | "uint"
        | "double"
        | "string"
        | "bytes"
        | "net.IP"
        | "net.CIDR"
        | "kubernetes.URL"
        | "kubernetes.Quantity"
        | "kubernetes.Semver"
        | "kubernetes.NamedFormat" => parse_type(name)?,
        _ => return None,
    };
    Some(CelType::Meta(of.into()))
}

fn simple_overload(is_member: bool, args: Vec<CelType>, result: CelType) -> Overload {
    Overload { is_member, args, result, is_generic: false }
}

fn parse_overload(text: &str) -> Overload {
    let (args, result) = text.split_once("> ").unwrap_or(("", text));
    let is_member = args.split(' ').any(|word| word == ".");
    let args: Vec<CelType> = args.split(' ').filter(|word| *word != ".").filter_map(parse_type).collect();
    let result = parse_type(result).unwrap_or(CelType::Dyn);
    Overload { is_member, args, result, is_generic: text.contains('A') }
}

/// Parses a type of the table.
fn parse_type(text: &str) -> Option<CelType> {
    if let Some(of) = text.strip_prefix('?') {
        return Some(CelType::optional(parse_type(of)?));
    }
    if let Some(of) = text.strip_prefix('[').and_then(|of| of.strip_suffix(']')) {
        return Some(CelType::list(parse_type(of)?));
    }
    if let Some((key, value)) = text.strip_prefix('{').and_then(|of| of.strip_suffix('}')?.split_once(',')) {
        return Some(CelType::map(parse_type(key)?, parse_type(value)?));
    }
    Some(match text {
        "A" => CelType::Param(0),
        "B" => CelType::Param(1),
        "type(A)" => CelType::Meta(CelType::Param(0).into()),
        "dyn" => CelType::Dyn,
        "bool" => CelType::Bool,
        "int" => CelType::Int,
        "uint" => CelType::Uint,
        "double" => CelType::Double,
        "string" => CelType::String,
        "bytes" => CelType::Bytes,
        "duration" => CelType::Duration,
        "timestamp" => CelType::Timestamp,
        "net.IP" => CelType::Opaque("net.IP"),
        "net.CIDR" => CelType::Opaque("net.CIDR"),
        name if name.starts_with("kubernetes.") => CelType::object(name),
        _ => return None,
    })
}
