#include "strata/cli/commands.hpp"

int main(int argc, char** argv) { return strata::run_command_line(argc, argv); }
