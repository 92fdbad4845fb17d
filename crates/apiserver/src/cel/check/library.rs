//! The functions that expressions can call: the operators and standard functions of CEL, its extensions for strings, sets and
//! lists, optional values, and Kubernetes' own libraries.

use std::collections::HashMap;

use super::types::Type;

/// One way to call a function. Parameters of its types are numbered from zero.
#[derive(Debug)]
pub(super) struct Overload {
    pub(super) is_member: bool,
    pub(super) args: Vec<Type>,
    pub(super) result: Type,
    /// Whether its types have parameters.
    pub(super) is_generic: bool,
}

/// How many type parameters an overload can have.
pub(super) const PARAMS: u32 = 2;

/// Functions by name; a line for each: `name: args > result; …`. A member has its target in front of a dot. Capitals are type
/// parameters.
const DECLARED: &str = "\
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

/// Types whose values have an order, and those that can be added up.
const COMPARED: [Type; 8] =
    [Type::Int, Type::Uint, Type::Double, Type::Bool, Type::Duration, Type::Timestamp, Type::String, Type::Bytes];
const SUMMED: [Type; 4] = [Type::Int, Type::Uint, Type::Double, Type::Duration];
const NUMBERS: [Type; 3] = [Type::Int, Type::Uint, Type::Double];

/// All functions by name.
pub(super) fn functions() -> HashMap<&'static str, Vec<Overload>> {
    let mut all: HashMap<&'static str, Vec<Overload>> = HashMap::new();
    for line in DECLARED.lines() {
        let Some((name, overloads)) = line.split_once(": ") else { continue };
        all.entry(name).or_default().extend(overloads.split("; ").map(overload));
    }
    for name in ["_<_", "_<=_", "_>_", "_>=_"] {
        let same = COMPARED.iter().map(|of| (of, of));
        let numbers = NUMBERS.iter().flat_map(|one| NUMBERS.iter().map(move |other| (one, other)));
        let pairs = same.chain(numbers.filter(|(one, other)| one != other));
        let overloads = pairs.map(|(one, other)| plain(false, vec![one.clone(), other.clone()], Type::Bool));
        all.entry(name).or_default().extend(overloads);
    }
    for (name, types) in [("isSorted", &COMPARED[..]), ("max", &COMPARED), ("min", &COMPARED), ("sum", &SUMMED)] {
        let result = |of: &Type| if name == "isSorted" { Type::Bool } else { of.clone() };
        let overloads = types.iter().map(|of| plain(true, vec![Type::list(of.clone())], result(of)));
        all.entry(name).or_default().extend(overloads);
    }
    let sort = COMPARED.iter().map(|of| plain(true, vec![Type::list(of.clone())], Type::list(of.clone())));
    all.entry("sort").or_default().extend(sort);
    all
}

/// The type that a name stands for, where a type is a value.
pub(super) fn named(name: &str) -> Option<Type> {
    let of = match name {
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "null_type" => Type::Null,
        "type" => Type::Meta(Type::Dyn.into()),
        "optional_type" => Type::optional(Type::Dyn),
        "google.protobuf.Duration" => Type::Duration,
        "google.protobuf.Timestamp" => Type::Timestamp,
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
        | "kubernetes.NamedFormat" => read(name)?,
        _ => return None,
    };
    Some(Type::Meta(of.into()))
}

fn plain(is_member: bool, args: Vec<Type>, result: Type) -> Overload {
    Overload { is_member, args, result, is_generic: false }
}

fn overload(text: &str) -> Overload {
    let (args, result) = text.split_once("> ").unwrap_or(("", text));
    let is_member = args.split(' ').any(|word| word == ".");
    let args: Vec<Type> = args.split(' ').filter(|word| *word != ".").filter_map(read).collect();
    let result = read(result).unwrap_or(Type::Dyn);
    Overload { is_member, args, result, is_generic: text.contains('A') }
}

/// A type as it stands in the table.
fn read(text: &str) -> Option<Type> {
    if let Some(of) = text.strip_prefix('?') {
        return Some(Type::optional(read(of)?));
    }
    if let Some(of) = text.strip_prefix('[').and_then(|of| of.strip_suffix(']')) {
        return Some(Type::list(read(of)?));
    }
    if let Some((key, value)) = text.strip_prefix('{').and_then(|of| of.strip_suffix('}')?.split_once(',')) {
        return Some(Type::map(read(key)?, read(value)?));
    }
    Some(match text {
        "A" => Type::Param(0),
        "B" => Type::Param(1),
        "type(A)" => Type::Meta(Type::Param(0).into()),
        "dyn" => Type::Dyn,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "net.IP" => Type::Opaque("net.IP"),
        "net.CIDR" => Type::Opaque("net.CIDR"),
        name if name.starts_with("kubernetes.") => Type::object(name),
        _ => return None,
    })
}
