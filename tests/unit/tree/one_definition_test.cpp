// Two types of one name in namespace strata are one type to the linker, which takes either's
// functions for both. Compilers do not notice when the definitions are in different files. What
// belongs to one file goes into an anonymous namespace.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "source_scanner.hpp"
#include "source_tree.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Where each type outside of anonymous namespaces is defined, by its full name.
std::map<std::string, std::set<std::string>> files_of_types(
    const std::vector<std::string>& folders) {
  std::map<std::string, std::set<std::string>> files;
  for (const fs::path& file : files_below(folders)) {
    if (!has_extension(file, {".hpp", ".h", ".cpp", ".cu", ".cuh"})) continue;
    const std::vector<TypeDefinition> types = SourceScanner(read_text(file)).types();
    for (const TypeDefinition& type : types) {
      if (type.scope.find("(anonymous)") == std::string::npos)
        files[type.scope + "::" + type.name].insert(file.string());
    }
  }
  return files;
}

std::vector<std::string> defined_twice(
    const std::map<std::string, std::set<std::string>>& files_of) {
  std::vector<std::string> found;
  for (const auto& [name, files] : files_of) {
    if (files.size() < 2) continue;
    std::string text = name + " in";
    for (const std::string& file : files) text += " " + file;
    found.push_back(text);
  }
  return found;
}

std::vector<std::string> names_in(const std::string& text) {
  std::vector<std::string> names;
  const std::vector<TypeDefinition> types = SourceScanner(text).types();
  for (const TypeDefinition& type : types) names.push_back(type.scope + "::" + type.name);
  return names;
}

TEST(OneDefinition, EachTypeOfTheProductIsDefinedInOneFile) {
  EXPECT_THAT(defined_twice(files_of_types({"include", "src", "io", "kernels"})), IsEmpty());
}

TEST(OneDefinition, NamesATypeOfTwoFilesWithBoth) {
  EXPECT_THAT(defined_twice({{"strata::A", {"a.cpp", "b.cpp"}}, {"strata::B", {"b.cpp"}}}),
              ElementsAre("strata::A in a.cpp b.cpp"));
}

TEST(OneDefinition, IsReadFromRealFiles) {
  const auto files = files_of_types({"include", "src", "io", "kernels"});
  EXPECT_GT(files.size(), 80u);
  EXPECT_THAT(files.at("strata::Plan"), ElementsAre("include/strata/plan/plan.hpp"));
}

TEST(SourceScanner, FindsTypesWithTheirNamespace) {
  EXPECT_THAT(names_in("namespace strata { struct A {}; enum class B : int { x }; namespace cpu { "
                       "class C final : A {}; } }"),
              ElementsAre("strata::A", "strata::B", "strata::cpu::C"));
  EXPECT_THAT(names_in("namespace strata { template <typename T, class U = X<T>> class D {}; }"),
              ElementsAre("strata::D"));
}

TEST(SourceScanner, TellsAnonymousNamespacesApart) {
  EXPECT_THAT(names_in("namespace strata { namespace { struct A {}; } struct B {}; }"),
              ElementsAre("strata::(anonymous)::A", "strata::B"));
}

TEST(SourceScanner, LeavesOutWhatDefinesNothingAtNamespaceScope) {
  EXPECT_THAT(
      names_in("namespace strata { struct A; class B { struct Inner {}; }; struct B::Later {}; "
               "void f() { struct Local {}; } using C = A; }"),
      ElementsAre("strata::B"));
}

TEST(SourceScanner, LooksIntoNeitherCommentsNorLiteralsNorMacros) {
  EXPECT_THAT(
      names_in("namespace strata {\n// struct A {\n/* struct B { */\n#define C \\\n  struct C {\n"
               "const char* d = \"struct D {\"; char e = '{'; int f = 1'000; auto g = R\"x(struct "
               "G {)x\";\nstruct H {};\n}"),
      ElementsAre("strata::H"));
}

}  // namespace
}  // namespace strata
