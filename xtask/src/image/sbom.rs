//! The bill of materials of an image: CycloneDX 1.6 as JSON.
//!
//! *Guaranteed*: it lists the crates that are linked into the program, with their features and dependencies, as
//! cargo resolves them for this package, these features and this target; crates of registries have the
//! checksums of `Cargo.lock`. Procedural macros, build scripts and dependencies of tests are not in the image,
//! and not in the list. The same inputs make the same bytes.
//!
//! *Not done*: C sources inside of crates, such as those of `aws-lc-sys`, are not components of their own.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::{ImageRecipe, oci::sha256, target_triple};
use crate::{
    steps::{cargo, command_output},
    workspace_root,
};

/// Path of the bill of materials in images.
pub(super) const SBOM_PATH: &str = "usr/share/doc/kubewake/sbom.cdx.json";
/// The fields after the depth in each line of cargo's tree, separated by a character that no field contains.
const TREE_FORMAT: &str = "|{p}|{f}|{l}|{r}";
const SEPARATOR: char = '|';

/// A crate in the output of `cargo tree`.
#[derive(Debug, PartialEq, Eq)]
struct CargoCrate<'a> {
    depth: usize,
    name: &'a str,
    version: &'a str,
    features: &'a str,
    license: &'a str,
    repository: &'a str,
}

/// Builds the bill of materials of the image with this name.
pub(super) fn build_sbom(reference: &str, recipe: &ImageRecipe, features: Option<&str>) -> anyhow::Result<Value> {
    let tree = cargo_tree(recipe, features)?;
    let crates =
        tree.lines().map(|line| parse(line).with_context(|| format!("unexpected line of cargo tree: {line:?}")));
    let crates = crates.collect::<anyhow::Result<Vec<_>>>()?;
    let lock = fs::read_to_string(workspace_root().join("Cargo.lock")).context("failed to read Cargo.lock")?;
    document(reference, &crates, &checksums(&lock), &linked_runtime()?)
}

fn cargo_tree(recipe: &ImageRecipe, features: Option<&str>) -> anyhow::Result<String> {
    let mut command = cargo();
    command.current_dir(workspace_root()).args([
        "tree",
        "--locked",
        "--package",
        recipe.package,
        "--target",
        &target_triple(),
    ]);
    command.args([
        "--edges",
        "normal,no-proc-macro",
        "--prefix",
        "depth",
        "--charset",
        "ascii",
        "--format",
        TREE_FORMAT,
    ]);
    if let Some(features) = features.or(recipe.features) {
        command.args(["--no-default-features", "--features", features]);
    }
    let output = command.output().context("failed to run cargo tree")?;
    ensure!(output.status.success(), "cargo tree failed: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).context("cargo tree prints no text")
}

fn parse(line: &str) -> Option<CargoCrate<'_>> {
    // Crates that were listed before are marked at the end.
    let mut fields = line.strip_suffix(" (*)").unwrap_or(line).split(SEPARATOR);
    let depth = fields.next()?.parse().ok()?;
    // Crates of the workspace have their folder after the version.
    let mut package = fields.next()?.split_whitespace();
    let name = package.next()?;
    let version = package.next()?.strip_prefix('v')?;
    let mut field = || fields.next().map(str::trim);
    Some(CargoCrate { depth, name, version, features: field()?, license: field()?, repository: field()? })
}

/// Checksums of registry packages, by name and version.
fn checksums(lock: &str) -> BTreeMap<(&str, &str), &str> {
    let packages = lock.split("[[package]]\n").skip(1);
    let entry = |package| Some(((field(package, "name")?, field(package, "version")?), field(package, "checksum")?));
    packages.filter_map(entry).collect()
}

/// A text field of a package in `Cargo.lock`.
fn field<'a>(package: &'a str, key: &str) -> Option<&'a str> {
    package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'))
}

/// A library that is linked into every program, and that cargo does not list.
struct LinkedRuntime {
    rust: String,
    libc: String,
    authorities: String,
}

fn linked_runtime() -> anyhow::Result<LinkedRuntime> {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = command_output(&rustc, &["--version"])?;
    let rust = version.split_whitespace().nth(1).context("rustc prints no version")?.to_owned();
    let libc = command_output("getconf", &["GNU_LIBC_VERSION"])?;
    let libc = libc.split_whitespace().nth(1).context("getconf prints no version of glibc")?.to_owned();
    let authorities = sha256(&Path::new("/").join(super::root_fs::CA_BUNDLE_PATH))?;
    Ok(LinkedRuntime { rust, libc, authorities })
}

fn document(
    reference: &str,
    crates: &[CargoCrate<'_>],
    checksums: &BTreeMap<(&str, &str), &str>,
    runtime: &LinkedRuntime,
) -> anyhow::Result<Value> {
    let program = crates.first().context("cargo tree lists nothing")?;
    let (name, version) = reference.rsplit_once(':').unwrap_or((reference, program.version));
    let mut components: BTreeMap<String, Value> = BTreeMap::new();
    for each in crates {
        components.entry(purl(each)).or_insert_with(|| component(each, each == program, checksums));
    }
    let rust = generic_component("rust-std", &runtime.rust, "MIT OR Apache-2.0");
    let libc = generic_component("glibc", &runtime.libc, "LGPL-2.1-or-later");
    let authorities = json!({
        "type": "file",
        "bom-ref": "ca-certificates",
        "name": format!("/{}", super::root_fs::CA_BUNDLE_PATH),
        "hashes": [{"alg": "SHA-256", "content": runtime.authorities}],
    });
    let mut graph = dependency_graph(crates);
    let others = [&rust, &libc].map(|it| it["bom-ref"].as_str().unwrap_or_default().to_owned());
    graph.entry(purl(program)).or_default().extend(others.clone());
    for other in others {
        graph.entry(other).or_default();
    }
    let image = json!({"type": "container", "bom-ref": reference, "name": name, "version": version});
    graph.insert(reference.to_owned(), BTreeSet::from([purl(program), "ca-certificates".to_owned()]));
    graph.entry("ca-certificates".to_owned()).or_default();
    let dependencies: Vec<_> = graph.iter().map(|(it, on)| json!({"ref": it, "dependsOn": on})).collect();
    let components: Vec<_> = components.into_values().chain([rust, libc, authorities]).collect();
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": image},
        "components": components,
        "dependencies": dependencies,
    }))
}

fn purl(package: &CargoCrate<'_>) -> String {
    // In URLs, the `+` of build metadata is read as a space.
    format!("pkg:cargo/{}@{}", package.name, package.version.replace('+', "%2B"))
}

fn component(package: &CargoCrate<'_>, is_program: bool, checksums: &BTreeMap<(&str, &str), &str>) -> Value {
    let purl = purl(package);
    let component = json!({
        "type": if is_program { "application" } else { "library" },
        "bom-ref": purl,
        "name": package.name,
        "version": package.version,
        "purl": purl,
        "properties": [{"name": "cargo:features", "value": package.features}],
    });
    // The notation before SPDX expressions.
    let license = package.license.replace('/', " OR ");
    let more = [
        ("licenses", (!license.is_empty()).then(|| json!([{"expression": license}]))),
        (
            "externalReferences",
            (!package.repository.is_empty()).then(|| json!([{"type": "vcs", "url": package.repository}])),
        ),
        (
            "hashes",
            checksums.get(&(package.name, package.version)).map(|sum| json!([{"alg": "SHA-256", "content": sum}])),
        ),
    ];
    let Value::Object(mut component) = component else { return component };
    component.extend(more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    Value::Object(component)
}

fn generic_component(name: &str, version: &str, license: &str) -> Value {
    let purl = format!("pkg:generic/{name}@{version}");
    json!({
        "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
        "licenses": [{"expression": license}],
    })
}

/// Dependencies of each crate. `cargo tree` lists them where the crate occurs first.
fn dependency_graph(crates: &[CargoCrate<'_>]) -> BTreeMap<String, BTreeSet<String>> {
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut above: Vec<String> = Vec::new();
    for package in crates {
        above.truncate(package.depth);
        let purl = purl(package);
        if let Some(parent) = above.last() {
            graph.entry(parent.clone()).or_default().insert(purl.clone());
        }
        graph.entry(purl.clone()).or_default();
        above.push(purl);
    }
    graph
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry\"\nchecksum = \
                        \"0a0b\"\ndependencies = [\n \"b\",\n]\n\n[[package]]\nname = \"ours\"\nversion = \"0.1.0\"\n";

    #[test]
    fn lines_of_the_tree_are_read() {
        let line = "2|a v1.0.0+x|std,default|MIT/Apache-2.0|https://a.example (*)";
        let read = parse(line).unwrap();
        assert_eq!((read.depth, read.name, read.version), (2, "a", "1.0.0+x"));
        assert_eq!(
            (read.features, read.license, read.repository),
            ("std,default", "MIT/Apache-2.0", "https://a.example")
        );
        assert_eq!(purl(&read), "pkg:cargo/a@1.0.0%2Bx");
        let ours = parse("0|ours v0.1.0 (/some/place)|||").unwrap();
        assert_eq!((ours.name, ours.version, ours.license), ("ours", "0.1.0", ""));
    }

    #[test]
    fn components_have_checksums_licenses_and_edges() {
        let lines = [
            "0|ours v0.1.0 (/x)|full|Apache-2.0|https://ours.example",
            "1|a v1.0.0||MIT/Apache-2.0|",
            "2|b v2.0.0||MIT|",
            "1|b v2.0.0||MIT| (*)",
        ];
        let crates: Vec<_> = lines.iter().map(|line| parse(line).unwrap()).collect();
        let runtime =
            LinkedRuntime { rust: "1.95.0".to_owned(), libc: "2.36".to_owned(), authorities: "00".to_owned() };
        let bom = document("docker.io/kubewake/ours:0.1.0", &crates, &checksums(LOCK), &runtime).unwrap();
        assert_eq!(bom["metadata"]["component"]["name"], "docker.io/kubewake/ours");
        let names: Vec<_> =
            bom["components"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["a", "b", "ours", "rust-std", "glibc", "/etc/ssl/certs/ca-certificates.crt"]);
        let a = &bom["components"][0];
        assert_eq!(a["hashes"][0]["content"], "0a0b");
        assert_eq!(a["licenses"][0]["expression"], "MIT OR Apache-2.0");
        let edges = |of: &str| {
            let all = bom["dependencies"].as_array().unwrap();
            all.iter().find(|it| it["ref"] == of).unwrap()["dependsOn"].clone()
        };
        assert_eq!(edges("pkg:cargo/a@1.0.0"), json!(["pkg:cargo/b@2.0.0"]));
        assert_eq!(edges("pkg:cargo/ours@0.1.0").as_array().unwrap().len(), 4);
    }
}
