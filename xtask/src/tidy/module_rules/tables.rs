//! The modules of the crates that are large enough for layers, from the bottom to the top.
//!
//! A line allows a module to use the modules after it. A change that needs a new use is a question for the review:
//! does the code belong elsewhere, or is the layer another one?

/// The modules of one crate.
#[derive(Debug)]
pub(super) struct ModuleTable {
    /// The folder of the sources.
    pub(super) folder: &'static str,
    /// A module, and the modules that it may use.
    pub(super) lines: &'static [(&'static str, &'static str)],
}

impl ModuleTable {
    /// The modules that a module may use; `None` if the table does not have the module.
    pub(super) fn allowed(&self, module: &str) -> Option<Vec<&'static str>> {
        let (_, used) = self.lines.iter().find(|(name, _)| *name == module)?;
        Some(used.split_whitespace().collect())
    }
}

pub(super) const MODULE_TABLES: &[ModuleTable] = &[COLLECTOR, OPERATOR, APISERVER];

/// `service` drives the `engine`, which runs components by the traits of `components`; the tables of `receiver` and so
/// on name them. Components of one kind do not know those of another kind, except that exporters and receivers use
/// authenticators.
const COLLECTOR: ModuleTable = ModuleTable {
    folder: "crates/collector/src",
    lines: &[
        ("core", ""),
        // `components`: the error of a component that cannot be built.
        ("net", "components core extension"),
        ("telemetry", "core net"),
        ("kubernetes", "components core net"),
        ("extension", "components net telemetry"),
        ("receiver", "components core extension net"),
        ("processor", "components core kubernetes"),
        // A load balancer builds its peers as components.
        ("exporter", "components core extension kubernetes net telemetry"),
        ("connector", "components core"),
        // The tables of the five kinds.
        ("components", "connector core exporter extension net processor receiver"),
        ("engine", "components core extension net telemetry"),
        ("service", "components core engine extension net telemetry"),
    ],
};

/// The folders follow the life of a pipeline, and each uses only those above it here.
const OPERATOR: ModuleTable = ModuleTable {
    folder: "crates/operator/src",
    lines: &[
        ("model", ""),
        ("runtime", "model"),
        ("objects", "model runtime"),
        ("pipeline", "model objects runtime"),
        ("feedback", "model objects pipeline runtime"),
        ("layer", "feedback model objects pipeline runtime"),
        ("admission", "model pipeline"),
        ("reconcile", "feedback layer model objects pipeline runtime"),
        ("process", "feedback layer model objects pipeline reconcile runtime"),
    ],
};

/// Requests arrive in `http`, pass `handler`, and reach the `store` through `admission`. Nothing below knows
/// `handler`: a controller is a client of it.
const APISERVER: ModuleTable = ModuleTable {
    folder: "kubernetes/apiserver/src",
    lines: &[
        ("api", ""),
        ("metrics", ""),
        ("client", ""),
        ("schema", "api"),
        // `registry`: field selectors.
        ("codec", "api registry"),
        ("trace", "api client codec"),
        ("store", "api codec"),
        ("auth", "api client codec trace"),
        ("access", "api auth store"),
        ("registry", "api auth schema store"),
        ("patch", "api codec schema"),
        ("apply", "api registry schema"),
        ("discovery", "api codec registry"),
        ("openapi", "api codec discovery registry schema"),
        // `crd` translates patterns, and its rules are expressions.
        ("cel", "crd"),
        ("crd", "api cel discovery registry schema store"),
        ("kinds", "api auth cel codec crd registry schema store"),
        ("kubelet_client", "api codec"),
        // A write passes admission within its handler, and policies read parameters with a handler's rules.
        ("admission", "api apply cel client codec handler patch registry schema store trace"),
        ("server_state", "access admission api handler kubelet_client metrics registry store trace"),
        (
            "handler",
            "admission api apply auth codec controller crd discovery http kinds kubelet_client openapi patch registry \
             schema server_state store trace",
        ),
        ("http", "api auth handler"),
        ("controller", "admission api auth codec crd handler registry server_state store"),
        (
            "server",
            "access admission api auth client controller handler http kinds kubelet_client metrics registry \
             server_state store trace",
        ),
    ],
};
