//! A cautious administrator looks at what is in the collector's image.
//!
//! `cargo xtask test` makes the image and says where it is; without it there is nothing to look at, which is said.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use kubewake_e2e::{
    SinkProcess, free_address, http,
    process::{ChildProcess, workspace},
    python,
};
use kubewake_release::ReleaseImage;
use serde_json::Value;

/// Where images have their bill of materials.
const SBOM: &str = "usr/share/doc/kubewake/sbom.cdx.json";

fn image() -> Option<PathBuf> {
    let image = std::env::var_os("KUBEWAKE_IMAGE").map(PathBuf::from);
    if image.is_none() {
        eprintln!("SKIPPED: no image was made: run `cargo xtask test`");
    }
    image
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Runs the program as a container would, in nothing but its image, where this test may do that.
fn run(image: &Path, args: &[&str]) -> Command {
    let may_chroot = Command::new("chroot").arg(image).args(["/kubewake", "--version"]).output();
    let mut command = if may_chroot.is_ok_and(|output| output.status.success()) {
        let mut command = Command::new("chroot");
        command.arg("--userspec=65532:65532").arg(image).arg("/kubewake");
        command
    } else {
        Command::new(image.join("kubewake"))
    };
    command.args(args).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

#[test]
fn the_image_holds_a_program_authorities_and_a_user_and_nothing_else() {
    let Some(image) = image() else { return };
    let names: BTreeSet<_> = files(&image).iter().map(|file| file.strip_prefix(&image).unwrap().to_owned()).collect();
    let expected = ["etc/group", "etc/passwd", "etc/ssl/certs/ca-certificates.crt", "kubewake", SBOM];
    assert_eq!(names, expected.into_iter().map(PathBuf::from).collect());

    for file in files(&image) {
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o7222, 0, "{} can be written to, or runs as somebody else", file.display());
    }
    let users = fs::read_to_string(image.join("etc/passwd")).unwrap();
    assert_eq!(users.lines().map(|line| line.split(':').nth(2).unwrap()).collect::<Vec<_>>(), ["65532"]);
    assert!(fs::read_to_string(image.join("etc/ssl/certs/ca-certificates.crt")).unwrap().contains("BEGIN CERTIFICATE"));
}

/// The names and versions of what an archive's bill of materials lists, which must be valid.
fn materials(image: ReleaseImage) -> Option<(Value, BTreeSet<String>)> {
    let archives = std::env::var_os("KUBEWAKE_IMAGE_ARCHIVES").map(PathBuf::from);
    let Some(archives) = archives else {
        eprintln!("SKIPPED: no archives of images were made: run `cargo xtask test`");
        return None;
    };
    let file = archives.parent().unwrap().join(image.name()).join(SBOM);
    let report = python::run("validate_sbom.py", &[file.to_str().unwrap()]);
    assert_eq!(report["problem"], Value::Null, "{}", image.name());
    let bom: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let names = bom["components"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned());
    let names = names.collect();
    Some((bom, names))
}

#[test]
fn bill_of_materials_is_valid_and_lists_what_the_program_links() {
    for image in ReleaseImage::ALL {
        let Some((bom, names)) = materials(image) else { return };
        assert_eq!(bom["metadata"]["component"]["name"], image.reference().rsplit_once(':').unwrap().0);
        for name in ["tokio", "rustls", "aws-lc-sys", "rust-std", "glibc"] {
            assert!(names.contains(name), "{}: {name}", image.name());
        }
        for name in ["serde_derive", "proptest", "kubewake-node"] {
            assert!(!names.contains(name), "{}: {name} is not linked", image.name());
        }
        assert_eq!(names.contains("kube-client"), image != ReleaseImage::Collector, "{}", image.name());
        let refs: BTreeSet<&str> =
            bom["components"].as_array().unwrap().iter().map(|it| it["bom-ref"].as_str().unwrap()).collect();
        let edges = bom["dependencies"].as_array().unwrap().iter();
        let unknown: Vec<_> = edges
            .flat_map(|it| it["dependsOn"].as_array().unwrap())
            .filter(|it| !refs.contains(it.as_str().unwrap()))
            .collect();
        assert!(unknown.is_empty(), "{}: {unknown:?}", image.name());
        let tokio = bom["components"].as_array().unwrap().iter().find(|it| it["name"] == "tokio").unwrap();
        assert_eq!(tokio["hashes"][0]["content"].as_str().unwrap().len(), 64);
        assert!(tokio["properties"][0]["value"].as_str().unwrap().contains("rt-multi-thread"), "{tokio}");
    }
}

#[test]
fn program_has_no_debug_information() {
    let Some(image) = image() else { return };
    let program = fs::read(image.join("kubewake")).unwrap();
    // The names of sections stand in the file as they are.
    for section in [".debug_info", ".debug_line", ".debug_str", ".debug_abbrev", ".debug_ranges"] {
        let name = format!("{section}\0");
        assert!(!program.windows(name.len()).any(|window| window == name.as_bytes()), "{section}");
    }
}

#[test]
fn the_program_in_it_is_a_collector_and_nothing_else() {
    let Some(image) = image() else { return };
    let said = run(&image, &["--help"]).output().unwrap();
    let help = String::from_utf8(said.stdout).unwrap();
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands: Vec<&str> = listed.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(commands, ["collector", "help"], "{help}");
    // Nor is any of it in there without a name.
    let program = fs::read(image.join("kubewake")).unwrap();
    let has = |text: &str| program.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has("otelcol_"), "what a collector says is there");
    for other in ["admissionregistration.k8s.io", "MutatingWebhookConfiguration", "kubewake-webhook"] {
        assert!(!has(other), "{other}");
    }
}

/// Names are found out by the C library, which would load a library for that if it were not linked well.
#[test]
fn it_runs_where_there_is_nothing_else_and_finds_a_backend_by_its_name() {
    let Some(image) = image() else { return };
    let sink = SinkProcess::start();
    let http_at = free_address();
    let root = tempfile::tempdir().unwrap();
    // The kubelet gives every container these; the image has none of them.
    let place = root.path().join("root");
    assert!(Command::new("cp").arg("-a").args([&image, &place]).status().unwrap().success());
    for file in ["hosts", "resolv.conf"] {
        fs::copy(format!("/etc/{file}"), place.join("etc").join(file)).unwrap();
    }
    let config = format!(
        "receivers: {{otlp: {{protocols: {{http: {{endpoint: \"{http_at}\"}}}}}}}}\n\
         exporters: {{otlp: {{endpoint: \"localhost:{}\", tls: {{insecure: true}}}}}}\n\
         service:\n  telemetry: {{metrics: {{level: none}}}}\n  \
         pipelines: {{traces: {{receivers: [otlp], exporters: [otlp]}}}}\n",
        sink.address().port()
    );
    fs::write(place.join("etc/collector.yaml"), config).unwrap();
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = run(&place, &["collector", "--config"]);
    let in_place = command.get_program() == "chroot";
    let at = place.join("etc/collector.yaml");
    command.arg(if in_place { Path::new("/etc/collector.yaml") } else { &at });
    let mut collector = ChildProcess::start(&mut command);
    collector.wait_until_ready();

    let span = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"one"}]}]}]}"#;
    let answer = http::post(http_at, "/v1/traces", "application/json", span.as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
    sink.wait_for_items(1);
}

#[test]
fn every_recipe_starts_from_scratch_and_runs_as_nobody() {
    let recipes: Vec<PathBuf> = files(&workspace().join("deploy/images"));
    assert_eq!(recipes.len(), ReleaseImage::ALL.len(), "{recipes:?}");
    for recipe in recipes {
        let text = fs::read_to_string(&recipe).unwrap();
        let name = recipe.file_stem().unwrap().to_str().unwrap();
        let image = text.split("\nFROM scratch\n").nth(1).unwrap_or_else(|| panic!("{name} is from something"));
        let lines: Vec<&str> = image.lines().collect();
        let is_example = matches!(name, "head-operator" | "demo-scheduler");
        let entry = if is_example {
            format!("ENTRYPOINT [\"/{name}\"]")
        } else {
            format!("ENTRYPOINT [\"/kubewake\", \"{name}\"]")
        };
        assert_eq!(lines, ["COPY --from=build /image/ /", "USER 65532:65532", entry.as_str()], "{name}");
        assert!(text.contains(&format!("RUN cargo xtask image {name} --output /image\n")), "{name}");
    }
}
