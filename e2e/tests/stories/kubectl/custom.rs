//! Kinds of one's own.

use std::sync::{Mutex, PoisonError};

use kubewake_e2e::{Kubectl, wait_until};

/// The definition of a kind whose group is in nobody else's way.
fn definition(group: &str) -> String {
    DEFINITION.replace("GROUP", group)
}

const DEFINITION: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat, shortNames: [bt], categories: [all, fleet]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.crew, statusReplicasPath: .status.crew}}
    additionalPrinterColumns:
    - {name: Crew, type: integer, jsonPath: .spec.crew}
    - {name: Harbour, type: string, jsonPath: .spec.harbour, priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        description: Something that floats.
        properties:
          spec:
            type: object
            required: [crew]
            x-kubernetes-validations:
            - {rule: "self.crew < 100", message: too many for one boat}
            properties:
              crew: {type: integer, minimum: 1, description: How many sail it.}
              harbour: {type: string, default: Hamburg}
              cargo:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}, tons: {type: integer}}}
          status:
            type: object
            properties:
              crew: {type: integer}
              conditions:
                type: array
                items: {type: object, properties: {type: {type: string}, status: {type: string}}}
"#;

const IDA: &str = "
apiVersion: GROUP/v1
kind: Boat
metadata: {name: ida}
spec: {crew: 3, cargo: [{name: tea, tons: 2}]}
";

/// Defines the kind, and takes it away again, whatever comes of the story.
fn with_boats(tell: impl FnOnce(&Kubectl, &str)) {
    /// On a cluster that stories share, `boats` would be those of any.
    static TURN: Mutex<()> = Mutex::new(());
    let Some(kubectl) = Kubectl::start() else { return };
    let _turn = (!kubectl.cluster().is_embedded()).then(|| TURN.lock().unwrap_or_else(PoisonError::into_inner));
    let group = format!("{}.example.com", kubectl.namespace());
    let _defined = Defined { kubectl: &kubectl, group: &group };
    kubectl.run_ok_with("apply -f -", &definition(&group));
    kubectl.run_ok(&format!("wait --for=condition=Established crd/boats.{group} --timeout=60s"));
    tell(&kubectl, &group);
}

/// A kind that goes with this.
struct Defined<'a> {
    kubectl: &'a Kubectl,
    group: &'a str,
}

impl Drop for Defined<'_> {
    fn drop(&mut self) {
        self.kubectl.run(&format!("delete crd boats.{} --ignore-not-found", self.group), "");
    }
}

#[test]
fn a_kind_of_ones_own_is_shown_as_its_definition_says() {
    with_boats(|kubectl, group| {
        kubectl.run_ok_with("create -f -", &IDA.replace("GROUP", group));
        for command in ["get boats", "get boat ida", "get bt", "get fleet", "get all"] {
            let shown = kubectl.run_ok(command);
            assert!(
                shown.contains("CREW") && shown.contains("ida") && !shown.contains("HARBOUR"),
                "{command}:\n{shown}"
            );
        }
        let wide = kubectl.run_ok("get boats -o wide");
        assert!(wide.contains("HARBOUR") && wide.contains("Hamburg"), "{wide}");
        assert!(kubectl.run_ok("describe boat ida").contains("Harbour:"));
        let explained = kubectl.run_ok("explain boat.spec.crew");
        assert!(explained.contains("How many sail it.") && explained.contains("integer"), "{explained}");
        assert!(kubectl.run_ok("explain boats").contains("Something that floats."));
        let listed = kubectl.run_ok(&format!("api-resources --api-group={group}"));
        assert!(listed.contains("boats") && listed.contains("bt") && listed.contains("Boat"), "{listed}");
        assert!(kubectl.run_ok("get crd").contains(group));
    });
}

#[test]
fn objects_of_it_are_applied_patched_scaled_and_awaited() {
    with_boats(|kubectl, group| {
        let ida = IDA.replace("GROUP", group);
        assert!(kubectl.run_ok_with("apply -f -", &ida).contains("created"));
        assert!(kubectl.run_ok_with("apply -f -", &ida).contains("unchanged"));
        wait_until("kubectl diff shows no difference", || kubectl.run("diff -f -", &ida).code == 0);
        let changed = ida.replace("crew: 3", "crew: 4");
        assert_eq!(kubectl.run("diff -f -", &changed).code, 1);
        assert!(kubectl.run_ok_with("apply -f -", &changed).contains("configured"));
        kubectl.run_ok(r#"patch boat ida --type=merge --patch {"spec":{"harbour":"Bremen"}}"#);
        // The way of merging that built-in kinds have is not for it.
        kubectl.run_failing(r#"patch boat ida --patch {"spec":{"crew":5}}"#);
        kubectl.run_ok("scale boat ida --replicas=7");
        kubectl.run_ok("label boat ida colour=white");
        assert_eq!(kubectl.json("boat ida")["spec"]["crew"], 7);
        assert_eq!(kubectl.field("boat ida", ".metadata.generation"), "4");
        let edited = kubectl.edit("boat ida", r#"sed -i 's/crew: 7/crew: 8/' "$1""#);
        assert_eq!((edited.code, &*kubectl.field("boat ida", ".spec.crew")), (0, "8"), "{edited:?}");
        if kubectl.is_at_least(24, "patch of a subresource") {
            let afloat = kubectl.follow("wait boat/ida --for=condition=Afloat --timeout=60s");
            let status = r#"{"status":{"conditions":[{"type":"Afloat","status":"True"}]}}"#;
            kubectl.run_ok(&format!("patch boat ida --subresource=status --type=merge --patch {status}"));
            assert!(afloat.output().status.success());
        }
    });
}

#[test]
fn several_apply_parts_of_one_object() {
    with_boats(|kubectl, group| {
        let ida = IDA.replace("GROUP", group);
        kubectl.run_ok_with("apply --server-side -f -", &ida);
        let coffee = ida.replace("crew: 3, ", "").replace("name: tea, tons: 2", "name: coffee, tons: 1");
        // A part need not be valid by itself, which old clients do not know.
        kubectl.run_ok_with("apply --server-side --field-manager=other --validate=false -f -", &coffee);
        assert_eq!(kubectl.field("boat ida", ".spec.cargo[*].name"), "tea coffee");
        let refused = kubectl
            .run_failing_with("apply --server-side --field-manager=other -f -", &ida.replace("crew: 3", "crew: 5"));
        assert!(refused.contains("conflict with \"kubectl\"") && refused.contains(".spec.crew"), "{refused}");
        kubectl.run_ok_with("apply --server-side -f -", &ida.replace("{name: tea, tons: 2}", ""));
        assert_eq!(kubectl.field("boat ida", ".spec.cargo[*].name"), "coffee");
    });
}

#[test]
fn what_the_schema_forbids_is_refused() {
    with_boats(|kubectl, group| {
        let ida = IDA.replace("GROUP", group);
        let refusal =
            |from: &str, to: &str| kubectl.run_failing_with("create --validate=false -f -", &ida.replace(from, to));
        assert!(refusal("crew: 3", "crew: 0").contains("should be greater than or equal to 1"));
        assert!(refusal("crew: 3", "crew: 300").contains("too many for one boat"));
        assert!(refusal("crew: 3, ", "").contains("spec.crew: Required value"));
        assert!(refusal("crew: 3", "crew: three").contains("must be of type integer"));
        let unknown = ida.replace("crew: 3", "crew: 3, sail: big");
        assert!(kubectl.run_failing_with("create -f -", &unknown).contains("sail"));
        kubectl.run_ok_with("create --validate=false -f -", &unknown);
        assert_eq!(kubectl.field("boat ida", ".spec.sail"), "", "it is pruned");
    });
}
