#include "tools/prompts.hpp"

#include "tools/resources.hpp"

namespace dockbridge::tools {

namespace {

using mcp::json;

mcp::PromptResult says(const std::string& text) {
  return {json::array({{{"role", "user"}, {"content", {{"type", "text"}, {"text", text}}}}})};
}

std::string given(const json& arguments, const char* name, const char* otherwise) {
  return arguments.value(name, std::string(otherwise));
}

}  // namespace

std::vector<mcp::Prompt> all_prompts(sandbox::Sandbox& sandbox) {
  return {
      {"diagnose_build",
       "Diagnose a failing build",
       "Runs a build or test command in the container, finds the first real cause of its failure and proposes a fix",
       {{"command", "What to run; found out if left out", false}},
       [](const json& arguments, const mcp::CallContext&) {
         const std::string command = given(arguments, "command", "");
         return says((command.empty() ? "Find out how this project is built and tested, and run that"
                                      : "Run `" + command + "`") +
                     " in the container with execute_command. If it takes long, wait for it with check_process and a "
                     "timeout. Look for the first error rather than the last; use check_process with grep on long "
                     "output. Read the files it names, explain the cause in two sentences, make the smallest fix, and "
                     "run it again to prove it.");
       },
       {"execute_command", "check_process"}},
      {"set_up_project",
       "Set up a project",
       "Gets a repository or the current directory ready to build and test in the container",
       {{"repository", "A git URL; the current directory if left out", false}},
       [](const json& arguments, const mcp::CallContext&) {
         const std::string repository = given(arguments, "repository", "");
         return says((repository.empty() ? "Look at the project in the container's working directory"
                                         : "Clone " + repository + " into the container's working directory") +
                     ". Read its README and build files, install what is missing, build it and run its tests. Start "
                     "long installations by execute_command with background: true and wait for them with "
                     "check_process. At the end list "
                     "the commands that work, so that the next person can repeat them.");
       },
       {"execute_command", "check_process"}},
      {"review_processes",
       "Review what is running",
       "Goes through the processes in the container and says what each does, what hangs and what can be stopped",
       {{"processId", "Only this one", false, complete_process_id(sandbox), "check_process"}},
       [](const json& arguments, const mcp::CallContext&) {
         const std::string process = given(arguments, "processId", "");
         return says(
             (process.empty() ? "List the processes in the container with check_process"
                              : "Look at the process " + process + " with check_process") +
             ". For each say what it does, how long it runs, what CPU and memory it takes, and whether it waits "
             "for input or hangs; read the end of its output where that helps. Propose which to stop, and stop "
             "none before I agree.");
       },
       {"check_process"}},
  };
}

}  // namespace dockbridge::tools
