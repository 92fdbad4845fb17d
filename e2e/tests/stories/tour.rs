//! A newcomer takes the tour of docs/tour.md, from its top to its end.

use std::process::{Command, Output};

use kubewake_e2e::{
    documented_output,
    kubectl::on_path,
    process::{ChildProcess, kubewake},
    up_process::{HomeDir, UpProcess},
    wait_for_ok,
};

use super::readme::{blocks, commands, commands_in, in_order};

const PAGE: &str = "docs/tour.md";

/// Somebody who has followed it so far.
struct Newcomer {
    home: HomeDir,
    up: UpProcess,
    /// Spans that are waited for, in a terminal of its own.
    tail: Option<String>,
    /// The last thing that was typed, and what it should end with.
    last: (String, i32),
    /// What the last block said.
    said: String,
}

impl Newcomer {
    fn new() -> Self {
        let home = HomeDir::default();
        let up = home.start(&[]);
        let bin = home.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(kubewake().get_program(), bin.join("kubewake")).unwrap();
        Self { home, up, tail: None, last: Default::default(), said: String::new() }
    }

    fn shell(&self, line: &str) -> Command {
        let grpc = self.up.line("OTLP gRPC").rsplit('/').next().unwrap();
        let ports = [
            ("127.0.0.1:16686", self.up.page().to_string()),
            ("127.0.0.1:4317", grpc.to_owned()),
            ("127.0.0.1:4318", self.up.otlp_http().to_string()),
        ];
        let line = ports.iter().fold(line.to_owned(), |line, (usual, ours)| line.replace(usual, ours));
        let mut shell = self.home.shell(&line);
        shell.env("KUBECONFIG", self.up.kubeconfig());
        shell
    }

    /// Types a command, which must end as the page says, and gives what it says.
    fn types(&self, line: &str, code: i32) -> Result<String, String> {
        let Output { status, stdout, stderr } = self.shell(line).output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        if status.code() == Some(code) { Ok(said) } else { Err(format!("{line}: {status}\n{said}")) }
    }

    /// Types a command while another terminal waits for spans, again until it has them, and gives what both say.
    fn types_beside(&self, tail: &str, line: &str) -> Result<String, String> {
        let mut tail = ChildProcess::start(&mut self.shell(tail));
        let mut said = String::new();
        while tail.is_running() {
            said = self.types(line, 0)?;
        }
        let status = tail.wait_for_exit();
        let tailed = tail.stdout();
        if status.success() { Ok(said + &tailed) } else { Err(format!("{status}: {}", tail.stderr())) }
    }

    fn follows(&mut self, block: &str) {
        self.said.clear();
        for (command, comment) in commands_in(block) {
            if command.starts_with("export PATH=") {
                continue;
            }
            if let Some(named) = command.strip_prefix("export KUBECONFIG=~") {
                assert_eq!(format!("{}{named}", self.home.path().display()), self.up.kubeconfig());
                continue;
            }
            if command.starts_with("kubewake tail") {
                self.tail = Some(command);
                continue;
            }
            let code = comment.strip_prefix("exits with ").map_or(0, |code| code.parse().unwrap());
            self.last = (command, code);
            let said = if looks(&self.last.0) { wait_for_ok(|| self.again()) } else { self.again().unwrap() };
            self.said += &said;
        }
    }

    /// Types the last command, in which nothing is different the second time if it only looks.
    fn again(&self) -> Result<String, String> {
        let (command, code) = &self.last;
        match &self.tail {
            Some(tail) => self.types_beside(tail, command),
            None => self.types(command, *code),
        }
    }

    /// What the page shows is what is said, if not at once.
    fn sees(&mut self, shown: &str) {
        let mut said = self.said.clone();
        wait_for_ok(|| {
            let missing = documented_output::missing_lines(shown, &said);
            if missing.is_empty() {
                return Ok(());
            }
            let problem = format!("{PAGE} shows {missing:#?}, but this is said:\n{said}");
            said = format!("{}{}", self.said, self.again()?);
            Err(problem)
        });
        self.said = said;
    }
}

/// Whether a command changes nothing.
fn looks(command: &str) -> bool {
    ["kubewake trace", "kubewake status", "kubewake check", "kubectl get"].iter().any(|it| command.starts_with(it))
}

#[test]
fn everything_on_the_tour_is_as_it_is_shown() {
    let mut newcomer = Newcomer::new();
    if on_path(newcomer.home.path()).is_none() {
        return;
    }
    // The first block is the screen of `up`, which has a story of its own.
    let steps = in_order(PAGE).into_iter().skip(1);
    for (language, block) in steps {
        match language.as_str() {
            "sh" => {
                // The other terminal has seen what it was opened for, unless it was opened just now.
                let opened = newcomer.tail.is_some() && newcomer.said.is_empty();
                newcomer.tail = newcomer.tail.take().filter(|_| opened);
                newcomer.follows(&block);
            }
            "text" => newcomer.sees(&block),
            other => panic!("nobody knows what to do with a block of {other}"),
        }
    }
    let services = newcomer.up.get("/api/v1/services");
    let sampled = services["services"].as_array().unwrap().iter().find(|service| service["name"] == "checkout");
    let spans = sampled.expect("some of the load is kept")["spans"].as_u64().unwrap();
    assert!((1..5000).contains(&spans), "{spans} of 10000 spans are kept, where it should be a tenth");
    let Newcomer { home, mut up, .. } = newcomer;
    up.process().signal("INT");
    assert!(up.process().wait_for_exit().success());
    home.wait_until_cleaned_up();
}

#[test]
fn the_readme_shows_a_part_of_the_tour() {
    let tour = commands(PAGE);
    let known = ["cargo run --release -- up", "cargo xtask test"];
    for command in commands("README.md") {
        assert!(known.contains(&&*command) || tour.contains(&command), "{command} is not in {PAGE}");
    }
    let shown = blocks(PAGE, "text").concat();
    for line in blocks("README.md", "text").concat().lines() {
        assert!(shown.lines().any(|it| it == line), "{line} is not in {PAGE}");
    }
}
