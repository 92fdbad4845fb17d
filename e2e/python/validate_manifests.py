"""Validates manifests against the schemas of a Kubernetes version: validate_manifests.py VERSION FILE...

Unknown fields are refused. Prints, as JSON, how many objects were looked at, and all that is wrong with them.
"""

import json
import sys

import kubernetes_validate
import yaml

# Kinds that no Kubernetes has, and files for other programs.
FOREIGN_GROUPS = (
    "telemetry.kubewake.io",
    "demo.kubewake.io",
    "monitoring.coreos.com",
    "kustomize.config.k8s.io",
    "install.istio.io",
    "telemetry.istio.io",
)


def problems_of(obj, version):
    try:
        kubernetes_validate.validate(obj, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        yield f"{'.'.join(str(part) for part in error.path)}: {error.message}"
    except (kubernetes_validate.SchemaNotFoundError, kubernetes_validate.InvalidSchemaError) as error:
        yield str(error)


def main(version, paths):
    count, problems = 0, []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            objects = [obj for obj in yaml.safe_load_all(file) if obj]
        for obj in objects:
            if obj["apiVersion"].split("/")[0] in FOREIGN_GROUPS:
                continue
            count += 1
            name = f"{path}: {obj['kind']} {obj['metadata']['name']}"
            problems += [f"{name}: {problem}" for problem in problems_of(obj, version)]
    print(json.dumps({"objects": count, "problems": problems}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
