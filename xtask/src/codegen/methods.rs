//! The Rust enum of every method of the protocol: what decides about each method is a `match` over it, and does not compile
//! with one left out.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};
use protox::prost_reflect::{DescriptorPool, Kind, MessageDescriptor};

/// The field that says which workspace a call is about.
const WORKSPACE: &str = "workspace_id";

/// The code of the enum.
pub(super) fn code(compiler: &protox::Compiler) -> Result<String> {
    let methods = methods(&compiler.descriptor_pool())?;
    let mut code = String::from(
        "/// A method of the protocol.\n\
         #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]\npub enum Method {\n",
    );
    for (name, method) in &methods {
        writeln!(code, "    /// `{}`.\n    {name},", method.path)?;
    }
    code.push_str("}\n\nimpl Method {\n    /// Every method, by name.\n    pub const ALL: &[Self] = &[\n");
    for name in methods.keys() {
        writeln!(code, "        Self::{name},")?;
    }
    code.push_str("    ];\n\n    /// Where it is called.\n    #[must_use]\n    pub const fn path(self) -> &'static str {\n        match self {\n");
    for (name, method) in &methods {
        writeln!(code, "            Self::{name} => {:?},", method.path)?;
    }
    code.push_str(
        "        }\n    }\n\n    /// The method that is called there; `None` if the protocol has none.\n    #[must_use]\n    \
         pub fn from_path(path: &str) -> Option<Self> {\n        match path {\n",
    );
    for (name, method) in &methods {
        writeln!(code, "            {:?} => Some(Self::{name}),", method.path)?;
    }
    code.push_str(
        "            _ => None,\n        }\n    }\n\n    /// The numbers of the fields that lead to the id of the workspace in its \
         first message; `None` if that names none.\n    #[must_use]\n    pub const fn workspace(self) -> Option<&'static [u32]> {\n        match self {\n",
    );
    for (name, method) in &methods {
        match &method.workspace {
            Some(fields) => writeln!(code, "            Self::{name} => Some(&{fields:?}),")?,
            None => writeln!(code, "            Self::{name} => None,")?,
        }
    }
    code.push_str("        }\n    }\n}\n");
    Ok(code)
}

struct Method {
    path: String,
    workspace: Option<Vec<u32>>,
}

fn methods(pool: &DescriptorPool) -> Result<BTreeMap<String, Method>> {
    let mut methods = BTreeMap::new();
    for method in pool.services().flat_map(|service| service.methods().collect::<Vec<_>>()) {
        let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
        let workspace = fields_to_workspace(&method.input(), 2);
        let former = methods.insert(method.name().to_owned(), Method { path, workspace });
        let former = former.map(|former| former.path).unwrap_or_default();
        ensure!(former.is_empty(), "{former} and another method have one name: give each its own");
    }
    methods.first_key_value().context("the protocol has no methods")?;
    Ok(methods)
}

/// Looks in the message, and in messages in it, so many deep.
fn fields_to_workspace(message: &MessageDescriptor, deep: usize) -> Option<Vec<u32>> {
    if let Some(field) = message.get_field_by_name(WORKSPACE) {
        return Some(vec![field.number()]);
    }
    message.fields().filter(|_| deep > 1).find_map(|field| match field.kind() {
        Kind::Message(inner) if !field.is_list() => {
            let mut path = fields_to_workspace(&inner, deep - 1)?;
            path.insert(0, field.number());
            Some(path)
        }
        _ => None,
    })
}
