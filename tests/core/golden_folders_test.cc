// Which golden folders are read. KVLENS_EXTRA_GOLDEN adds folders, separated by colons.

#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "support/fixtures.h"

namespace kvlens {
namespace {

TEST(GoldenFoldersTest, EachHoldsCasesAndIsPrintedWithTheirNumber) {
  for (const testing::GoldenFolder& folder : testing::golden_folders()) {
    std::printf("[  GOLDEN  ] %s: %zu course cases, %zu hf cases", folder.path.string().c_str(),
                folder.course_files.size(), folder.hf_folders.size());
    if (folder.left_to_javascript != 0) {
      std::printf(", %zu GGUF models and block tables left to the JavaScript tests",
                  folder.left_to_javascript);
    }
    std::printf("\n");
    EXPECT_GT(folder.cases() + folder.left_to_javascript, 0U)
        << folder.path << " has no golden case or does not exist";
  }
}

TEST(GoldenFoldersTest, TheFixturesAreFourCourseCasesAndTwelveCheckpoints) {
  const auto folders = testing::golden_folders();
  std::set<std::string> course;
  for (const auto& path : folders[0].course_files) course.insert(path.stem().string());
  EXPECT_EQ(course, (std::set<std::string>{"fixture-2x2x4", "one-token-1x1x2", "small-3x4x16",
                                           "wide-4x8x32"}));
  EXPECT_EQ(folders[1].hf_folders.size(), 12U);
}

}  // namespace
}  // namespace kvlens
